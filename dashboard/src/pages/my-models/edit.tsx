/** What is changed of a model or an agent. What is not touched is not sent: another tab may have changed it meanwhile. */
import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { useMutation } from "urql";
import { MyModelsUpdateAgentDocument, MyModelsUpdateDocument, type MyModelWholeFragment } from "../../client/generated/graphql.js";
import { useServerForm } from "../../ui/server-form.js";
import { Failure } from "../../ui/states.js";
import { type Draft, draftOf, toAgentUpdate, toUpdate } from "./draft.js";
import { ALL_FIELDS, NamePart, SourcePart } from "./fields.js";
import { TermsPart } from "./terms.js";
import { OUTDATED } from "./wizard.js";

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
  const [before] = useState(() => draftOf(model));
  const [draft, setDraft] = useState(before);
  const [, updateModel] = useMutation(MyModelsUpdateDocument);
  const [, updateAgent] = useMutation(MyModelsUpdateAgentDocument);
  const form = useServerForm(ALL_FIELDS);
  const [isBusy, setBusy] = useState(false);
  const set = (changes: Partial<Draft>) => setDraft((known) => ({ ...known, ...changes }));
  const isAgent = draft.kind === "prompt" || draft.kind === "code";
  const part = { draft, set, form, id: model.id };
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    const answer = isAgent
      ? await updateAgent({ input: toAgentUpdate(model.id, before, draft) }, OUTDATED)
      : await updateModel({ input: toUpdate(model.id, before, draft) }, OUTDATED);
    setBusy(false);
    if (form.accept(answer)) onClose();
  };
  return (
    <Modal opened onClose={onClose} title={`Edit ${before.title}`} size="lg" closeOnClickOutside={false}>
      <form onSubmit={submit} noValidate>
        <Stack>
          {form.rest && <Failure error={form.rest} />}
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
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={isBusy}>
              Save
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
