/** The terms of a model or an agent: who may call it, for what, and how often. */
import { Checkbox, Group, MultiSelect, NumberInput, Radio, SimpleGrid, Stack, Text, TextInput } from "@mantine/core";
import { useQuery } from "urql";
import { MyModelsFallbacksDocument } from "../../client/generated/graphql.js";
import { formatCredits } from "../../ui/credits.js";
import { toPerMillion } from "../../ui/prices.js";
import { type Draft, pricesOf } from "./draft.js";
import type { PartProps } from "./fields.js";
import { PRICE_LABELS } from "./labels.js";

export function TermsPart(props: PartProps & { readonly isPublisher: boolean }) {
  const { draft, set, form, id, isPublisher } = props;
  return (
    <Stack>
      <Radio.Group
        label="Who may call it"
        {...form.input("visibility", draft.visibility, (value: string) => set({ visibility: value === "PUBLIC" ? "PUBLIC" : "PRIVATE" }))}
      >
        <Stack gap={6} mt={4}>
          <Radio value="PRIVATE" label="Only you" />
          <Radio
            value="PUBLIC"
            label="Everybody at this gateway"
            description={isPublisher ? whenPublic(draft.kind) : "Needs the right to publish, which your account does not have yet."}
          />
        </Stack>
      </Radio.Group>
      {draft.kind === "proxy" && <Prices {...props} />}
      {draft.kind === "proxy" && draft.modality === "TEXT" && (
        <>
          <NumberInput
            label="Context length in tokens"
            description="Empty: not said."
            {...form.input("advertised", draft.contextLength, (value: string | number) => set({ contextLength: String(value) }))}
            hideControls
          />
          <Checkbox.Group
            label="What it can do"
            value={[...draft.capabilities]}
            onChange={(chosen) => set({ capabilities: (["TOOL_CALLING", "REASONING"] as const).filter((value) => chosen.includes(value)) })}
          >
            <Group mt={4}>
              <Checkbox value="TOOL_CALLING" label="Calls functions" />
              <Checkbox value="REASONING" label="Thinks before it answers" />
            </Group>
          </Checkbox.Group>
        </>
      )}
      {(draft.kind === "proxy" || draft.kind === "endpoint") && (
        <NumberInput
          label="Requests a minute of one account"
          description="Empty: no limit. 0.5 is one in two minutes."
          {...form.input("perUserRpm", draft.perUserRpm, (value: string | number) => set({ perUserRpm: String(value) }))}
          hideControls
        />
      )}
      {draft.kind === "proxy" && (
        <Checkbox
          label="Only bought credits pay for it"
          description="Never those that a tier gives."
          checked={draft.isPaidOnly}
          onChange={({ target }) => set({ isPaidOnly: target.checked })}
          error={form.errorOf("isPaidOnly")}
        />
      )}
      {draft.kind === "proxy" && id !== undefined && <Fallbacks {...props} id={id} />}
    </Stack>
  );
}

function whenPublic(kind: Draft["kind"]): string {
  return kind === "prompt" || kind === "code" ? "As soon as it is saved." : "Three hours after it is saved.";
}

function Prices({ draft, set, form }: PartProps) {
  return (
    <fieldset style={{ border: 0, margin: 0, padding: 0 }}>
      <Text component="legend" size="sm" fw={600} p={0}>
        Prices in credits, each of one unit
      </Text>
      <Text size="xs" c="dimmed" mb={6}>
        Empty: free, or as the price that it falls back to.
      </Text>
      {draft.modality === "IMAGE" && (
        <Radio.Group
          label="What is charged for a picture"
          value={draft.imagePricing}
          onChange={(value) => set({ imagePricing: value === "TOKENS" ? "TOKENS" : "REQUEST" })}
          error={form.errorOf("imagePricing")}
          mb="xs"
        >
          <Group mt={4}>
            <Radio value="REQUEST" label="The picture" />
            <Radio value="TOKENS" label="Its tokens" />
          </Group>
        </Radio.Group>
      )}
      <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm">
        {pricesOf(draft.modality).map((field) => {
          const price = draft.prices[field] ?? "";
          const million = PRICE_LABELS[field].includes("token") ? toPerMillion(price.trim()) : null;
          return (
            <TextInput
              key={field}
              label={PRICE_LABELS[field]}
              {...form.text(field, price, (typed) => set({ prices: { ...draft.prices, [field]: typed } }))}
              description={million === null ? " " : `${formatCredits(million)} credits a million`}
              inputWrapperOrder={["label", "input", "description", "error"]}
              inputMode="decimal"
              autoComplete="off"
            />
          );
        })}
      </SimpleGrid>
    </fieldset>
  );
}

function Fallbacks({ draft, set, form, id }: PartProps & { readonly id: string }) {
  const [{ data }] = useQuery({ query: MyModelsFallbacksDocument, variables: { id } });
  const candidates = data?.node?.__typename === "ProxyModel" ? (data.node.fallbackCandidates ?? []) : [];
  const ids = [...new Set([...draft.fallbackIds, ...candidates.map(({ modelId }) => modelId)])];
  return (
    <MultiSelect
      label="Tried when its upstream fails"
      description="In this order, at most three. None is dearer than this model."
      data={ids}
      {...form.input("fallbackIds", [...draft.fallbackIds], (fallbackIds) => set({ fallbackIds }))}
      searchable
      nothingFoundMessage="No model can be a fallback of this one"
    />
  );
}
