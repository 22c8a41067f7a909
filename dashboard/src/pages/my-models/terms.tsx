/** Visibility, prices and limits of a model or agent. */
import { Checkbox, Group, MultiSelect, NumberInput, Radio, SimpleGrid, Stack, Text, TextInput } from "@mantine/core";
import { useQuery } from "urql";
import { MyModelsFallbacksDocument } from "../../client/generated/graphql.js";
import { fromPerMillion } from "../../ui/prices.js";
import { type Draft, pricesOf } from "./draft.js";
import type { PartProps } from "./fields.js";
import { PRICE_LABELS, UNIT_LABELS } from "./labels.js";
import { isPerMillion, priceUnitOf } from "./typed-prices.js";

export function TermsPart(props: PartProps & { readonly isPublisher: boolean }) {
  const { draft, set, form, id, isPublisher } = props;
  return (
    <Stack>
      <Radio.Group
        label="Visibility"
        {...form.input("visibility", draft.visibility, (value: string) => set({ visibility: value === "PUBLIC" ? "PUBLIC" : "PRIVATE" }))}
      >
        <Stack gap={6} mt={4}>
          <Radio value="PRIVATE" label="Private: only you can call it" />
          <Radio
            value="PUBLIC"
            label="Public: all users of this gateway can call it"
            description={isPublisher ? whenPublic(draft.kind) : "Your account does not have permission to publish yet."}
          />
        </Stack>
      </Radio.Group>
      {draft.kind === "proxy" && <Prices {...props} />}
      {draft.kind === "proxy" && draft.modality === "TEXT" && (
        <>
          <NumberInput
            label="Context length in tokens"
            description="Leave empty if unknown."
            {...form.input("advertised", draft.contextLength, (value: string | number) => set({ contextLength: String(value) }))}
            hideControls
          />
          <Checkbox.Group
            label="Capabilities"
            value={[...draft.capabilities]}
            onChange={(chosen) => set({ capabilities: (["TOOL_CALLING", "REASONING"] as const).filter((value) => chosen.includes(value)) })}
          >
            <Group mt={4}>
              <Checkbox value="TOOL_CALLING" label="Tool calling" />
              <Checkbox value="REASONING" label="Reasoning" />
            </Group>
          </Checkbox.Group>
        </>
      )}
      {(draft.kind === "proxy" || draft.kind === "endpoint") && (
        <NumberInput
          label="Rate limit per account, in requests per minute"
          description="Leave empty for no limit. 0.5 means one request every two minutes."
          {...form.input("perUserRpm", draft.perUserRpm, (value: string | number) => set({ perUserRpm: String(value) }))}
          hideControls
        />
      )}
      {draft.kind === "proxy" && (
        <Checkbox
          label="Purchased credits only"
          description="Free credits of a tier cannot pay for it."
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
  return kind === "prompt" || kind === "code" ? "Takes effect when you save." : "Takes effect three hours after you save.";
}

function Prices({ draft, set, form }: PartProps) {
  return (
    <fieldset style={{ border: 0, margin: 0, padding: 0 }}>
      <Text component="legend" size="sm" fw={600} p={0}>
        Prices in credits
      </Text>
      <Text size="xs" c="dimmed" mb={6}>
        An empty price is free, or defaults to a related price.
      </Text>
      {draft.modality === "IMAGE" && (
        <Radio.Group
          label="Image pricing"
          value={draft.imagePricing}
          onChange={(value) => set({ imagePricing: value === "TOKENS" ? "TOKENS" : "REQUEST" })}
          error={form.errorOf("imagePricing")}
          mb="xs"
        >
          <Group mt={4}>
            <Radio value="REQUEST" label="Per image" />
            <Radio value="TOKENS" label="Per token" />
          </Group>
        </Radio.Group>
      )}
      <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm">
        {pricesOf(draft.modality).map((field) => {
          const price = draft.prices[field] ?? "";
          const unit = priceUnitOf(draft, field);
          const exact = isPerMillion(unit) ? fromPerMillion(price.trim()) : null;
          return (
            <TextInput
              key={field}
              label={`${PRICE_LABELS[field]}, ${UNIT_LABELS[unit]}`}
              {...form.text(field, price, (typed) => set({ prices: { ...draft.prices, [field]: typed } }))}
              description={exact === null ? " " : `= ${exact} credits per ${unit}`}
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
      label="Fallback models"
      description="Tried in this order when the upstream fails. At most three, none more expensive than this model."
      data={ids}
      {...form.input("fallbackIds", [...draft.fallbackIds], (fallbackIds) => set({ fallbackIds }))}
      searchable
      nothingFoundMessage="No suitable models found"
    />
  );
}
