/** Form that edits a model or agent. It sends edited fields only, because another tab may have changed the others meanwhile. */
import { Text } from "@mantine/core";
import { useState } from "react";
import { useMutation } from "urql";
import {
  MyModelsOneDocument,
  type MyModelsOneQuery,
  MyModelsUpdateAgentDocument,
  MyModelsUpdateDocument,
  type MyModelWholeFragment,
} from "../../client/generated/graphql.js";
import { refetchQuery } from "../../client/graphql.js";
import { DialogForm } from "../../ui/dialog-form.js";
import { ChangedElsewhere, useEdited } from "../../ui/edited.js";
import { FormModal } from "../../ui/form-modal.js";
import { useServerForm } from "../../ui/server-form.js";
import { type Draft, draftOf, toAgentUpdate, toUpdate } from "./draft.js";
import { ALL_FIELDS, NamePart, SourcePart } from "./fields.js";
import { AskAboutPrices, usePriceQuestion } from "./price-question.js";
import { TermsPart } from "./terms.js";
import { OUTDATED } from "./wizard.js";

/** Fields whose change in another tab causes a warning. */
const LABELS: Readonly<Partial<Record<keyof Draft, string>>> = {
  name: "Name",
  title: "Title",
  description: "Description",
  visibility: "Visibility",
  requiredSafetyFeatures: "Safety checks",
  api: "API format",
  url: "URL",
  upstreamModel: "Upstream model name",
  inputModalities: "Input types",
  outputModalities: "Output types",
  capabilities: "Capabilities",
  contextLength: "Context length in tokens",
  perUserRpm: "Rate limit per account",
  isPaidOnly: "Purchased credits only",
  fallbackIds: "Fallback models",
  imagePricing: "Image pricing",
  prices: "Prices",
  systemPrompt: "System prompt",
  baseModelId: "Base model",
  mcpServers: "Tools",
};

type Node = MyModelsOneQuery["node"] | undefined;
export function isModel(node: Node): node is Extract<Node, MyModelWholeFragment> {
  return node !== null && node !== undefined && "modelId" in node;
}

export function Edit({
  model,
  isPublisher,
  onClose,
}: {
  readonly model: MyModelWholeFragment;
  readonly isPublisher: boolean;
  readonly onClose: () => void;
}) {
  const [title] = useState(model.title);
  const { draft, base, set, elsewhere, isUpToDate } = useEdited(draftOf(model), LABELS);
  const [, updateModel] = useMutation(MyModelsUpdateDocument);
  const [, updateAgent] = useMutation(MyModelsUpdateAgentDocument);
  const form = useServerForm(ALL_FIELDS);
  const prices = usePriceQuestion();
  const isAgent = draft.kind === "prompt" || draft.kind === "code";
  const part = { draft, set, form, id: model.id };
  const submit = async () => {
    // The page passes fresh data on to `useEdited`, which shows the warning.
    const { data } = await refetchQuery(MyModelsOneDocument, { id: model.id });
    if (isModel(data?.node) && !isUpToDate(draftOf(data.node))) return;
    if (draft.prices !== base.prices && !(await prices.confirm(draft))) return;
    const answer = isAgent
      ? await updateAgent({ input: toAgentUpdate(model.id, base, draft) }, OUTDATED)
      : await updateModel({ input: toUpdate(model.id, base, draft) }, OUTDATED);
    if (form.accept(answer)) onClose();
  };
  return (
    <FormModal opened onClose={onClose} title={<bdi className="any-wrap">Edit {title}</bdi>} size="lg">
      {prices.question && <AskAboutPrices question={prices.question} />}
      <DialogForm form={form} action="Save" onSubmit={submit} onCancel={onClose} above={<ChangedElsewhere changes={elsewhere} />}>
        {draft.kind === "code" && (
          <Text size="sm" c="dimmed">
            Name, title and description come from the repository. Change them there, then deploy the latest commit.
          </Text>
        )}
        <NamePart {...part} />
        <SourcePart {...part} />
        <TermsPart {...part} isPublisher={isPublisher} />
        {model.visibility === "PUBLIC" && draft.kind === "proxy" && (
          <Text size="sm" c="dimmed">
            This model is public: changes to prices and accepted credits take effect three hours after you save.
          </Text>
        )}
      </DialogForm>
    </FormModal>
  );
}
