/** Model picker. The address has the selected model. */
import { Select, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { useQuery } from "urql";
import { useAnswer } from "../../client/answer.js";
import {
  type Modality,
  type ModelCapability,
  type ModelFilter,
  PlaygroundModelDocument,
  type PlaygroundModelPartsFragment,
  PlaygroundModelsDocument,
} from "../../client/generated/graphql.js";
import { formatCredits } from "../../ui/credits.js";
import { perMillion } from "../../ui/prices.js";
import { Failure } from "../../ui/states.js";
import { CAPABILITIES } from "../models/filters.js";

export type PlaygroundModel = PlaygroundModelPartsFragment;

/** Words of a search that name a capability. */
const CAPABILITY_WORDS: ReadonlyMap<string, ModelCapability> = new Map([
  ["vision", "VISION"],
  ["reasoning", "REASONING"],
  ["tools", "TOOLS"],
]);

/** Searches for names; "free" and names of capabilities filter. */
export function filterOf(modality: Modality, search = ""): ModelFilter {
  const words = search.toLowerCase().split(/\s+/u);
  const capabilities = words.flatMap((word) => CAPABILITY_WORDS.get(word) ?? []);
  const names = words.filter((word) => word !== "free" && !CAPABILITY_WORDS.has(word)).join(" ");
  return {
    modalities: [modality],
    ...(words.includes("free") && { isFree: true }),
    ...(capabilities.length > 0 && { capabilities }),
    ...(names !== "" && { search: names }),
  };
}

/** `requestedId` is an id or alias from the address. Without one, returns the default model of the modality. */
export function useModel(modality: Modality, requestedId: string | null): PlaygroundModel | null {
  const [{ data: listed }] = useQuery({ query: PlaygroundModelsDocument, variables: { filter: filterOf(modality) } });
  const models = listed?.models?.nodes;
  const inList =
    requestedId === null
      ? (models?.find(({ isDefault }) => isDefault) ?? models?.[0])
      : models?.find(({ restId }) => restId === requestedId);
  const [{ data: fetched }] = useQuery({
    query: PlaygroundModelDocument,
    variables: { id: requestedId ?? "" },
    pause: requestedId === null || models === undefined || inList !== undefined,
  });
  return inList ?? (requestedId === null ? null : (fetched?.model ?? null));
}

/** A model to compare `model` with: another one of the list, free where there is one. */
export function useOtherModel(modality: Modality, model: PlaygroundModel | null): PlaygroundModel | null {
  const [{ data }] = useQuery({ query: PlaygroundModelsDocument, variables: { filter: filterOf(modality) } });
  const others = (data?.models?.nodes ?? []).filter(({ restId }) => restId !== model?.restId);
  return others.find(({ pricing }) => isFree(pricing)) ?? others[0] ?? null;
}

export interface ModelPickerProps {
  readonly modality: Modality;
  readonly label: string;
  readonly model: PlaygroundModel | null;
  /** Model in the address, which may not exist. */
  readonly requestedId: string | null;
  readonly onChange: (restId: string) => void;
}

export function ModelPicker({ modality, label, model, requestedId, onChange }: ModelPickerProps) {
  const [search, setSearch] = useState("");
  const { data: first, error, refetch } = useAnswer({ query: PlaygroundModelsDocument, variables: { filter: filterOf(modality) } });
  const isComplete = first?.models !== null && first !== undefined && first.models.totalCount <= first.models.nodes.length;
  const [debounced] = useDebouncedValue(search.trim(), 200);
  const [{ data: found }] = useQuery({
    query: PlaygroundModelsDocument,
    variables: { filter: filterOf(modality, debounced) },
    pause: isComplete || debounced === "" || debounced === model?.restId,
  });
  const choices = new Map(
    [...(model ? [model] : []), ...(first?.models?.nodes ?? []), ...(found?.models?.nodes ?? [])].map((one) => [one.restId, one]),
  );
  // The gateway also finds words of descriptions, which are not known here.
  const foundIds = new Set(debounced === search.trim() ? (found?.models?.nodes ?? []).map(({ restId }) => restId) : []);
  if (error && !first) return <Failure error={error} retry={refetch} />;
  return (
    <div>
      <Select
        label={label}
        data={[...choices.keys()]}
        renderOption={({ option: { value } }) => <Choice restId={value} model={choices.get(value)} />}
        filter={({ options, search: typed, limit }) => {
          const words = typed.trim() === model?.restId ? [] : typed.toLowerCase().split(/\s+/u);
          const isShown = (restId: string) => foundIds.has(restId) || isMatch(choices.get(restId), restId, words);
          return options.filter((option) => "value" in option && isShown(option.value)).slice(0, limit);
        }}
        description="Search by name, vendor, capability or “free”."
        value={model?.restId ?? null}
        onChange={(value) => value !== null && onChange(value)}
        searchable
        onSearchChange={setSearch}
        allowDeselect={false}
        nothingFoundMessage="No models found"
        placeholder={first ? "Select a model" : "Loading…"}
        limit={200}
        maxDropdownHeight={320}
        error={requestedId !== null && model === null && first ? `${requestedId} is not available here. Select another model.` : undefined}
      />
      <Text size="xs" c="dimmed" mt={4} mih={18} className="any-wrap">
        {model ? describePrices(model) : ""}
      </Text>
    </div>
  );
}

/** Words that match a model, besides those of its ID. */
function wordsOf({ title, publisher, capabilities, pricing }: PlaygroundModel): string {
  const labels = capabilities.map((capability) => `${CAPABILITIES.get(capability) ?? ""} ${capability}`);
  return [title, publisher, ...labels, isFree(pricing) ? "free" : "paid"].join(" ").toLowerCase();
}

function isMatch(model: PlaygroundModel | undefined, restId: string, words: readonly string[]): boolean {
  const texts = `${restId.toLowerCase()} ${model ? wordsOf(model) : ""}`;
  return words.every((word) => texts.includes(word));
}

function Choice({ restId, model }: { readonly restId: string; readonly model: PlaygroundModel | undefined }) {
  const capabilities = model?.capabilities.flatMap((capability) => CAPABILITIES.get(capability)?.toLowerCase() ?? []) ?? [];
  return (
    <div className="any-wrap">
      <Text size="sm">{restId}</Text>
      {model && (
        <Text size="xs" c="dimmed">
          {[describePrices(model), ...capabilities].join(" · ")}
        </Text>
      )}
    </div>
  );
}

/** For example "Credits: 1.00 input, 2.00 output per 1M tokens". */
function describePrices({ modality, pricing, isPaidOnly, imagePricing }: PlaygroundModel): string {
  const tokens = [
    pricing.inputTextTokens !== null && `${formatCredits(perMillion(pricing.inputTextTokens))} input`,
    pricing.outputTextTokens !== null && `${formatCredits(perMillion(pricing.outputTextTokens))} output`,
  ].filter((part) => part !== false);
  const audio = [
    pricing.inputAudioTokens !== null && `${formatCredits(perMillion(pricing.inputAudioTokens))} input`,
    pricing.outputAudioTokens !== null && `${formatCredits(perMillion(pricing.outputAudioTokens))} output`,
  ].filter((part) => part !== false);
  const parts = [
    tokens.length > 0 && `${tokens.join(", ")} per 1M tokens`,
    modality === "REALTIME" && audio.length > 0 && `${audio.join(", ")} per 1M audio tokens`,
    modality === "IMAGE" && pricing.imageRequests !== null && `${formatCredits(pricing.imageRequests)} per image`,
    modality === "IMAGE" &&
      pricing.outputImageTokens !== null &&
      (imagePricing === "REQUEST"
        ? `${formatCredits(pricing.outputImageTokens)} per image`
        : `${formatCredits(perMillion(pricing.outputImageTokens))} per 1M image tokens`),
    pricing.outputVideoSeconds !== null && `${formatCredits(pricing.outputVideoSeconds)} per second of video`,
    pricing.outputAudioSeconds !== null && `${formatCredits(pricing.outputAudioSeconds)} per second of audio`,
    pricing.characters !== null && `${formatCredits(perMillion(pricing.characters))} per 1M characters`,
    pricing.inputAudioSeconds !== null && `${formatCredits(pricing.inputAudioSeconds)} per second of audio input`,
  ].filter((part) => part !== false);
  const prices = parts.length === 0 || isFree(pricing) ? "Free" : `Credits: ${parts.join("; ")}`;
  return isPaidOnly ? `${prices}. Purchased credits only.` : prices;
}

function isFree(pricing: PlaygroundModel["pricing"]): boolean {
  return Object.entries(pricing).every(([name, price]) => name === "__typename" || price === null || Number(price) === 0);
}
