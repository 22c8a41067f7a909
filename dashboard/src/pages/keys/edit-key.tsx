/** The form that changes a key. What is not touched is not sent: another tab may have changed it meanwhile, and whoever edits is told. */
import { Group, Modal, NumberInput, Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { useMutation } from "urql";
import { type KeyRowFragment, KeysOneDocument, KeysUpdateDocument } from "../../client/generated/graphql.js";
import { refetchQuery } from "../../client/graphql.js";
import { sumOfCredits } from "../../ui/credits.js";
import { DialogForm } from "../../ui/dialog-form.js";
import { ChangedElsewhere, useEdited } from "../../ui/edited.js";
import { useServerForm } from "../../ui/server-form.js";
import { EXPIRIES, ModelsChoice, SECONDS_PER_DAY } from "./key-form.js";

/** Its expiry stays. */
const KEEP = "keep";

interface Draft {
  readonly name: string;
  /** What is left, which becomes less by itself, and what it was in all; another key's, which bounds it, may be anything. */
  readonly budget: string;
  readonly budgetInAll: string;
  readonly isEveryModel: boolean;
  readonly models: readonly string[];
  readonly expiresAt: string | null;
}

const LABELS = {
  name: "Name",
  budgetInAll: "Budget",
  isEveryModel: "Models",
  models: "Which models",
  expiresAt: "Expires",
} as const satisfies Partial<Record<keyof Draft, string>>;

function draftOf({ name, creditBudget, spent, allowedModels, expiresAt, parentId }: KeyRowFragment): Draft {
  return {
    name,
    budget: creditBudget ?? "",
    budgetInAll: creditBudget === null || parentId !== null ? "" : sumOfCredits([creditBudget, spent]),
    isEveryModel: allowedModels === null,
    models: allowedModels ?? [],
    expiresAt,
  };
}

/** `since`: as whoever shows the key asks for it, who is told with this. */
export function EditKey({
  apiKey,
  since,
  onClose,
}: {
  readonly apiKey: KeyRowFragment;
  readonly since: string;
  readonly onClose: () => void;
}) {
  const [, update] = useMutation(KeysUpdateDocument);
  const form = useServerForm(["name", "creditBudget", "allowedModels", "expiresIn"]);
  const [title] = useState(apiKey.name);
  const [expiry, setExpiry] = useState(KEEP);
  const { draft, base, set, elsewhere, isUpToDate } = useEdited(draftOf(apiKey), LABELS);
  const areModelsTouched = draft.isEveryModel !== base.isEveryModel || draft.models !== base.models;
  const submit = async () => {
    // What is new in the answer is shown, and told of, by whoever shows the key.
    const { data } = await refetchQuery(KeysOneDocument, { id: apiKey.id, from: since });
    if (data?.node?.__typename === "ApiKey" && !isUpToDate(draftOf(data.node))) return;
    const answer = await update({
      input: {
        id: apiKey.id,
        ...(draft.name !== base.name && { name: draft.name }),
        ...(draft.budget !== base.budget && { creditBudget: draft.budget === "" ? null : draft.budget }),
        ...(expiry !== KEEP && { expiresIn: expiry === "" ? null : Number(expiry) * SECONDS_PER_DAY }),
        ...(areModelsTouched && { allowedModels: draft.isEveryModel ? null : draft.models }),
      },
    });
    if (form.accept(answer)) onClose();
  };
  return (
    <Modal opened onClose={onClose} title={<bdi className="any-wrap">Edit {title}</bdi>} size="lg" closeOnClickOutside={false}>
      <DialogForm form={form} action="Save" onSubmit={submit} onCancel={onClose} above={<ChangedElsewhere changes={elsewhere} />}>
        <TextInput label="Name" {...form.text("name", draft.name, (name) => set({ name }))} autoComplete="off" data-autofocus />
        <Group grow align="flex-start">
          <NumberInput
            label="Credits left of its budget"
            description="From now on. Empty: as much as your balance has."
            {...form.input("creditBudget", draft.budget, (value: string | number) => set({ budget: String(value) }))}
            allowNegative={false}
            decimalScale={9}
            hideControls
          />
          <Select
            label="Expires"
            description="Counted from now."
            data={[{ value: KEEP, label: "as it is" }, ...EXPIRIES]}
            {...form.input("expiresIn", expiry, (value: string | null) => setExpiry(value ?? KEEP))}
            allowDeselect={false}
          />
        </Group>
        <ModelsChoice isEveryModel={draft.isEveryModel} models={draft.models} set={set} form={form} />
      </DialogForm>
    </Modal>
  );
}
