/** What is changed of a model or an agent. What is not touched is not sent: another tab may have changed it meanwhile. */
import { Modal, Text } from "@mantine/core";
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
import { useServerForm } from "../../ui/server-form.js";
import { type Draft, draftOf, toAgentUpdate, toUpdate } from "./draft.js";
import { ALL_FIELDS, NamePart, SourcePart } from "./fields.js";
import { TermsPart } from "./terms.js";
import { OUTDATED } from "./wizard.js";

/** What is told of when it is changed elsewhere meanwhile. */
const LABELS: Readonly<Partial<Record<keyof Draft, string>>> = {
  name: "Name",
  title: "Title",
  description: "Description",
  visibility: "Who may call it",
  requiredSafetyFeatures: "Checks of what goes in",
  api: "The format that it speaks",
  url: "Address",
  upstreamModel: "Its own name for the model",
  inputModalities: "What goes into it",
  outputModalities: "What comes out of it",
  capabilities: "What it can do",
  contextLength: "Context length in tokens",
  perUserRpm: "Requests a minute of one account",
  isPaidOnly: "Only bought credits pay for it",
  fallbackIds: "Tried when its upstream fails",
  imagePricing: "What is charged for a picture",
  prices: "Prices",
  systemPrompt: "What it is told first",
  baseModelId: "The model that it asks",
  mcpServers: "Tools that it may use",
};

type Answered = MyModelsOneQuery["node"] | undefined;
export function isModel(node: Answered): node is Extract<Answered, MyModelWholeFragment> {
  return node !== null && node !== undefined && "modelId" in node;
}

/** In a dialog that a click beside it does not close. */
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
  const isAgent = draft.kind === "prompt" || draft.kind === "code";
  const part = { draft, set, form, id: model.id };
  const submit = async () => {
    // What is new in the answer is shown, and told of, by whoever shows the model.
    const { data } = await refetchQuery(MyModelsOneDocument, { id: model.id });
    if (isModel(data?.node) && !isUpToDate(draftOf(data.node))) return;
    const answer = isAgent
      ? await updateAgent({ input: toAgentUpdate(model.id, base, draft) }, OUTDATED)
      : await updateModel({ input: toUpdate(model.id, base, draft) }, OUTDATED);
    if (form.accept(answer)) onClose();
  };
  return (
    <Modal opened onClose={onClose} title={<bdi className="any-wrap">Edit {title}</bdi>} size="lg" closeOnClickOutside={false}>
      <DialogForm form={form} action="Save" onSubmit={submit} onCancel={onClose} above={<ChangedElsewhere changes={elsewhere} />}>
        {draft.kind === "code" && (
          <Text size="sm" c="dimmed">
            Its name, title and description come from its repository: change them there, then get the latest commit.
          </Text>
        )}
        <NamePart {...part} />
        <SourcePart {...part} />
        <TermsPart {...part} isPublisher={isPublisher} />
        {model.visibility === "PUBLIC" && draft.kind === "proxy" && (
          <Text size="sm" c="dimmed">
            It is public: other prices, and other credits that pay for it, count three hours after you save them.
          </Text>
        )}
      </DialogForm>
    </Modal>
  );
}
