/** Which model is asked: chosen among those of its kind, by the address. */
import { Select, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { useQuery } from "urql";
import { useAnswer } from "../../client/answer.js";
import {
  type Modality,
  PlaygroundModelDocument,
  type PlaygroundModelPartsFragment,
  PlaygroundModelsDocument,
} from "../../client/generated/graphql.js";
import { formatCredits } from "../../ui/credits.js";
import { perMillion } from "../../ui/prices.js";
import { Failure } from "../../ui/states.js";

export type PlaygroundModel = PlaygroundModelPartsFragment;

export const filterOf = (modality: Modality, search = "") => ({ modalities: [modality], ...(search !== "" && { search }) });

/** `requestedId`: as the address has it, an id or an alias; without one, the model that serves requests which name none. */
export function useModel(modality: Modality, requestedId: string | null): PlaygroundModel | null {
  const [{ data: listed }] = useQuery({ query: PlaygroundModelsDocument, variables: { filter: filterOf(modality) } });
  const models = listed?.models?.nodes;
  const inList =
    requestedId === null
      ? (models?.find(({ isDefault }) => isDefault) ?? models?.[0])
      : models?.find(({ restId }) => restId === requestedId);
  const [{ data: asked }] = useQuery({
    query: PlaygroundModelDocument,
    variables: { id: requestedId ?? "" },
    pause: requestedId === null || models === undefined || inList !== undefined,
  });
  return inList ?? (requestedId === null ? null : (asked?.model ?? null));
}

export interface ModelPickerProps {
  readonly modality: Modality;
  readonly label: string;
  readonly model: PlaygroundModel | null;
  /** What the address names, also where there is no such model. */
  readonly requestedId: string | null;
  readonly onChange: (restId: string) => void;
}

export function ModelPicker({ modality, label, model, requestedId, onChange }: ModelPickerProps) {
  const [search, setSearch] = useState("");
  const { data: first, error, refetch } = useAnswer({ query: PlaygroundModelsDocument, variables: { filter: filterOf(modality) } });
  const isWhole = first?.models !== null && first !== undefined && first.models.totalCount <= first.models.nodes.length;
  const [asked] = useDebouncedValue(search.trim(), 200);
  const [{ data: found }] = useQuery({
    query: PlaygroundModelsDocument,
    variables: { filter: filterOf(modality, asked) },
    pause: isWhole || asked === "" || asked === model?.restId,
  });
  const ids = new Set([
    ...(model ? [model.restId] : []),
    ...(first?.models?.nodes ?? []).map(({ restId }) => restId),
    ...(found?.models?.nodes ?? []).map(({ restId }) => restId),
  ]);
  if (error && !first) return <Failure error={error} retry={refetch} />;
  return (
    <div>
      <Select
        label={label}
        data={[...ids]}
        value={model?.restId ?? null}
        onChange={(value) => value !== null && onChange(value)}
        searchable
        onSearchChange={setSearch}
        allowDeselect={false}
        nothingFoundMessage="No model is called that"
        placeholder={first ? "Choose a model" : "Loading"}
        limit={200}
        maxDropdownHeight={320}
        error={
          requestedId !== null && model === null && first
            ? `${requestedId} is not offered to you for this. Choose another model.`
            : undefined
        }
      />
      <Text size="xs" c="dimmed" mt={4} mih={18} className="any-wrap">
        {model ? describePrices(model) : ""}
      </Text>
    </div>
  );
}

/** In a line, such as "1.00 in, 2.00 out for a million tokens". */
function describePrices({ modality, pricing, isPaidOnly, imagePricing }: PlaygroundModel): string {
  const tokens = [
    pricing.inputTextTokens !== null && `${formatCredits(perMillion(pricing.inputTextTokens))} in`,
    pricing.outputTextTokens !== null && `${formatCredits(perMillion(pricing.outputTextTokens))} out`,
  ].filter((part) => part !== false);
  const parts = [
    tokens.length > 0 && `${tokens.join(", ")} for a million tokens`,
    modality === "IMAGE" && pricing.imageRequests !== null && `${formatCredits(pricing.imageRequests)} a picture`,
    modality === "IMAGE" &&
      pricing.outputImageTokens !== null &&
      (imagePricing === "REQUEST"
        ? `${formatCredits(pricing.outputImageTokens)} a picture`
        : `${formatCredits(perMillion(pricing.outputImageTokens))} for a million tokens of pictures`),
    pricing.outputVideoSeconds !== null && `${formatCredits(pricing.outputVideoSeconds)} a second of video`,
    pricing.outputAudioSeconds !== null && `${formatCredits(pricing.outputAudioSeconds)} a second of sound`,
    pricing.characters !== null && `${formatCredits(perMillion(pricing.characters))} for a million characters`,
    pricing.inputAudioSeconds !== null && `${formatCredits(pricing.inputAudioSeconds)} a second of a recording`,
  ].filter((part) => part !== false);
  const prices = parts.length === 0 ? "Costs nothing" : `Credits: ${parts.join("; ")}`;
  return isPaidOnly ? `${prices}. Takes bought credits only.` : prices;
}
