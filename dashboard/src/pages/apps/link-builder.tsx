/** Builder of authorization links and device flow commands for an app. */
import {
  Autocomplete,
  Button,
  Checkbox,
  Group,
  NumberInput,
  SegmentedControl,
  Select,
  SimpleGrid,
  Stack,
  Text,
  TextInput,
} from "@mantine/core";
import { useState } from "react";
import { useQuery } from "urql";
import { AppsModelsDocument, type AppsOwnKeyFragment } from "../../client/generated/graphql.js";
import { BASE } from "../../client/place.js";
import { Snippet } from "../../ui/copy.js";
import { ModelsSelect } from "../../ui/models-select.js";
import { Card } from "../../ui/page.js";
import { authorizationLink, deviceCommands, type LinkOptions } from "./links.js";

/** Users sign in at the origin of the dashboard. */
const SIGN_IN_URL = `${location.origin}${BASE}`;
const PERMISSIONS = [
  { value: "profile", label: "Profile: name, e-mail address and tier" },
  { value: "balance", label: "Balance: available credits" },
  { value: "usage", label: "Usage: requests and costs" },
];

export function LinkBuilder({ app: { start, redirectUrls }, appKey }: { readonly app: AppsOwnKeyFragment; readonly appKey: string }) {
  const [{ data }] = useQuery({ query: AppsModelsDocument });
  const [flow, setFlow] = useState("browser");
  const [options, setOptions] = useState<LinkOptions>({
    ...{ appKey, redirectUrl: redirectUrls[0] ?? "", models: [], budget: "", days: "", permissions: [], state: "", answer: "code" },
  });
  const set = (changes: Partial<LinkOptions>) => setOptions((before) => ({ ...before, ...changes }));
  const isBrowser = flow === "browser";
  return (
    <Card
      title="Authorization link"
      actions={
        <SegmentedControl
          size="xs"
          value={flow}
          onChange={setFlow}
          data={[
            { value: "browser", label: "Browser" },
            { value: "device", label: "Device" },
          ]}
          aria-label="Authorization flow"
        />
      }
    >
      <Stack>
        <Text size="sm" c="dimmed">
          {isBrowser
            ? "Send users to this URL. They review what the app asks for, can restrict it, and return to the app with the response."
            : "For programs and devices without a browser. They show a short code, which the user enters on a page of this gateway."}
        </Text>
        <SimpleGrid cols={{ base: 1, sm: 2 }}>
          <TextInput
            label="App key"
            description={`Starts with ${start}.`}
            value={options.appKey}
            onChange={({ target }) => set({ appKey: target.value.trim() })}
            placeholder="pk_…"
            autoComplete="off"
            spellCheck={false}
          />
          {isBrowser && (
            <Autocomplete
              label="Redirect URL"
              description="Where users return to."
              data={[...redirectUrls]}
              value={options.redirectUrl}
              onChange={(redirectUrl) => set({ redirectUrl: redirectUrl.trim() })}
              placeholder="https://example.com/callback"
              spellCheck={false}
            />
          )}
          {isBrowser && (
            <>
              <NumberInput
                label="Budget in credits"
                description="The most that the key can spend."
                value={options.budget}
                onChange={(budget) => set({ budget: String(budget) })}
                error={options.budget.startsWith("-") ? "Enter 0 or more" : undefined}
                decimalScale={9}
                hideControls
              />
              <NumberInput
                label="Expires after (days)"
                description="Default 30, at most 365."
                value={options.days}
                onChange={(days) => set({ days: String(days) })}
                min={1}
                max={365}
                allowDecimal={false}
                hideControls
              />
              <ModelsSelect
                label="Models"
                description="Leave empty for all models."
                data={data?.models?.nodes.map(({ restId }) => restId) ?? []}
                value={[...options.models]}
                onChange={(models) => set({ models })}
                placeholder={options.models.length === 0 ? "Search models" : ""}
              />
              <Select
                label="Response type"
                description="How the app receives the key."
                data={[
                  { value: "code", label: "Authorization code (PKCE)" },
                  { value: "key", label: "Key in the URL fragment" },
                ]}
                value={options.answer}
                onChange={(answer) => set({ answer: answer === "key" ? "key" : "code" })}
                allowDeselect={false}
              />
              <TextInput
                label="State"
                description="Returned unchanged. The app uses it to match the response to its request."
                value={options.state}
                onChange={({ target }) => set({ state: target.value })}
                autoComplete="off"
              />
            </>
          )}
          <Checkbox.Group label="Permissions" value={[...options.permissions]} onChange={(permissions) => set({ permissions })}>
            <Stack gap={6} mt={4}>
              {PERMISSIONS.map(({ value, label }) => (
                <Checkbox key={value} value={value} label={label} />
              ))}
            </Stack>
          </Checkbox.Group>
        </SimpleGrid>
        {isBrowser ? (
          <BrowserLink options={options} />
        ) : (
          <Snippet code={deviceCommands(SIGN_IN_URL, options)} label="Device flow commands" />
        )}
      </Stack>
    </Card>
  );
}

function BrowserLink({ options }: { readonly options: LinkOptions }) {
  if (options.redirectUrl === "") return <Text c="dimmed">Enter a redirect URL to see the link.</Text>;
  const link = authorizationLink(SIGN_IN_URL, options);
  return (
    <Stack gap="xs">
      <Snippet code={link} label="Authorization link" wraps />
      {options.answer === "code" ? (
        <Text size="sm" c="dimmed">
          The app replaces CODE_CHALLENGE with a new PKCE code challenge for each user.
        </Text>
      ) : (
        <Group>
          <Button component="a" href={link} target="_blank" rel="noopener" variant="default" size="xs">
            Preview
          </Button>
        </Group>
      )}
    </Stack>
  );
}
