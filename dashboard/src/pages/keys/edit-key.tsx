/** Form that edits a key. It sends edited fields only, and warns when another tab has changed the key meanwhile. */
import { Group, NumberInput, Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { useMutation } from "urql";
import { type KeyRowFragment, KeysOneDocument, KeysUpdateDocument } from "../../client/generated/graphql.js";
import { refetchQuery } from "../../client/graphql.js";
import { sumOfCredits } from "../../ui/credits.js";
import { DialogForm } from "../../ui/dialog-form.js";
import { ChangedElsewhere, useEdited } from "../../ui/edited.js";
import { FormModal } from "../../ui/form-modal.js";
import { useServerForm } from "../../ui/server-form.js";
import { budgetProblem, EXPIRIES, ModelsChoice, SECONDS_PER_DAY } from "./key-form.js";

/** Option that leaves the expiry unchanged. */
const KEEP = "keep";

interface Draft {
  readonly name: string;
  /** Remaining budget, which shrinks with every charge. */
  readonly budget: string;
  /** Remaining budget plus spent credits. Empty without a budget, and for child keys, whose parent limits them as well. */
  readonly totalBudget: string;
  readonly isEveryModel: boolean;
  readonly models: readonly string[];
  readonly expiresAt: string | null;
}

const LABELS = {
  name: "Name",
  totalBudget: "Budget",
  isEveryModel: "Models",
  models: "Allowed models",
  expiresAt: "Expires",
} as const satisfies Partial<Record<keyof Draft, string>>;

function draftOf({ name, creditBudget, spent, allowedModels, expiresAt, parentId }: KeyRowFragment): Draft {
  return {
    name,
    budget: creditBudget ?? "",
    totalBudget: creditBudget === null || parentId !== null ? "" : sumOfCredits([creditBudget, spent]),
    isEveryModel: allowedModels === null,
    models: allowedModels ?? [],
    expiresAt,
  };
}

/** `since` has to match the query of the key's page, which then gets the fresh data as well. */
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
  const areModelsEdited = draft.isEveryModel !== base.isEveryModel || draft.models !== base.models;
  const submit = async () => {
    // The page passes fresh data on to `useEdited`, which shows the warning.
    const { data } = await refetchQuery(KeysOneDocument, { id: apiKey.id, from: since });
    if (data?.node?.__typename === "ApiKey" && !isUpToDate(draftOf(data.node))) return;
    const answer = await update({
      input: {
        id: apiKey.id,
        ...(draft.name !== base.name && { name: draft.name }),
        ...(draft.budget !== base.budget && { creditBudget: draft.budget === "" ? null : draft.budget }),
        ...(expiry !== KEEP && { expiresIn: expiry === "" ? null : Number(expiry) * SECONDS_PER_DAY }),
        ...(areModelsEdited && { allowedModels: draft.isEveryModel ? null : draft.models }),
      },
    });
    if (form.accept(answer)) onClose();
  };
  return (
    <FormModal opened onClose={onClose} title={<bdi className="any-wrap">Edit {title}</bdi>} size="lg">
      <DialogForm form={form} action="Save" onSubmit={submit} onCancel={onClose} above={<ChangedElsewhere changes={elsewhere} />}>
        <TextInput label="Name" {...form.text("name", draft.name, (name) => set({ name }))} autoComplete="off" data-autofocus />
        <Group grow align="flex-start">
          <NumberInput
            label="Remaining budget in credits"
            description="Leave empty for no limit."
            {...form.input("creditBudget", draft.budget, (value: string | number) => set({ budget: String(value) }))}
            error={budgetProblem(draft.budget) ?? form.errorOf("creditBudget")}
            decimalScale={9}
            hideControls
          />
          <Select
            label="Expires"
            description="Counted from now."
            data={[{ value: KEEP, label: "Unchanged" }, ...EXPIRIES]}
            {...form.input("expiresIn", expiry, (value: string | null) => setExpiry(value ?? KEEP))}
            allowDeselect={false}
          />
        </Group>
        <ModelsChoice isEveryModel={draft.isEveryModel} models={draft.models} set={set} form={form} />
      </DialogForm>
    </FormModal>
  );
}
