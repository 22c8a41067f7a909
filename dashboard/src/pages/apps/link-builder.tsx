/** What the app sends people to: made from what it wants of them. */
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
import { type Asked, authorizationLink, deviceCommands } from "./links.js";

/** People sign in where the dashboard is. */
const SIGN_IN_URL = `${location.origin}${BASE}`;
const PERMISSIONS = [
  { value: "profile", label: "Profile: who they are" },
  { value: "balance", label: "Balance: what they can spend" },
  { value: "usage", label: "Usage: what they have used" },
];

export function LinkBuilder({ app: { start, redirectUrls }, appKey }: { readonly app: AppsOwnKeyFragment; readonly appKey: string }) {
  const [{ data }] = useQuery({ query: AppsModelsDocument });
  const [flow, setFlow] = useState("browser");
  const [asked, setAsked] = useState<Asked>({
    ...{ appKey, redirectUrl: redirectUrls[0] ?? "", models: [], budget: "", days: "", permissions: [], state: "", answer: "code" },
  });
  const set = (changes: Partial<Asked>) => setAsked((before) => ({ ...before, ...changes }));
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
            { value: "browser", label: "In a browser" },
            { value: "device", label: "On a device" },
          ]}
          aria-label="Where the app runs"
        />
      }
    >
      <Stack>
        <Text size="sm" c="dimmed">
          {isBrowser
            ? "Send people to this address. They see what the app asks for, may narrow it, and return to the app with the answer."
            : "For programs and devices without a browser: they show a short code, which a person types on a page of this gateway."}
        </Text>
        <SimpleGrid cols={{ base: 1, sm: 2 }}>
          <TextInput
            label="App key"
            description={`It begins with ${start}.`}
            value={asked.appKey}
            onChange={({ target }) => set({ appKey: target.value.trim() })}
            placeholder="pk_…"
            autoComplete="off"
            spellCheck={false}
          />
          {isBrowser && (
            <Autocomplete
              label="Redirect address"
              description="Where people return to."
              data={[...redirectUrls]}
              value={asked.redirectUrl}
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
                value={asked.budget}
                onChange={(budget) => set({ budget: String(budget) })}
                allowNegative={false}
                decimalScale={9}
                hideControls
              />
              <NumberInput
                label="Days"
                description="30 unless stated, at most 365."
                value={asked.days}
                onChange={(days) => set({ days: String(days) })}
                min={1}
                max={365}
                allowDecimal={false}
                hideControls
              />
              <ModelsSelect
                label="Models"
                description="Every model unless stated."
                data={data?.models?.nodes.map(({ restId }) => restId) ?? []}
                value={[...asked.models]}
                onChange={(models) => set({ models })}
                placeholder={asked.models.length === 0 ? "Search by name" : ""}
              />
              <Select
                label="Answer"
                description="How the app comes by the key."
                data={[
                  { value: "code", label: "A code, which the app exchanges (PKCE)" },
                  { value: "key", label: "The key itself, behind the #" },
                ]}
                value={asked.answer}
                onChange={(answer) => set({ answer: answer === "key" ? "key" : "code" })}
                allowDeselect={false}
              />
              <TextInput
                label="State"
                description="Given back as it came: by it the app knows its own question again."
                value={asked.state}
                onChange={({ target }) => set({ state: target.value })}
                autoComplete="off"
              />
            </>
          )}
          <Checkbox.Group label="What it wants to see" value={[...asked.permissions]} onChange={(permissions) => set({ permissions })}>
            <Stack gap={6} mt={4}>
              {PERMISSIONS.map(({ value, label }) => (
                <Checkbox key={value} value={value} label={label} />
              ))}
            </Stack>
          </Checkbox.Group>
        </SimpleGrid>
        {isBrowser ? (
          <BrowserLink asked={asked} />
        ) : (
          <Snippet code={deviceCommands(SIGN_IN_URL, asked)} label="Commands of the device flow" />
        )}
      </Stack>
    </Card>
  );
}

function BrowserLink({ asked }: { readonly asked: Asked }) {
  if (asked.redirectUrl === "") return <Text c="dimmed">State a redirect address, and the link is shown here.</Text>;
  const link = authorizationLink(SIGN_IN_URL, asked);
  return (
    <Stack gap="xs">
      <Snippet code={link} label="Authorization link" wraps />
      {asked.answer === "code" ? (
        <Text size="sm" c="dimmed">
          The app puts the challenge of a verifier of its own in the place of CODE_CHALLENGE, for each person another.
        </Text>
      ) : (
        <Group>
          <Button component="a" href={link} target="_blank" rel="noopener" variant="default" size="xs">
            See what people see
          </Button>
        </Group>
      )}
    </Stack>
  );
}
