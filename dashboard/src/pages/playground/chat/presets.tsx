/** Presets of the account: model, system prompt and parameters under a name. */
import { Button, Group, Modal, Select, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { useMutation, useQuery } from "urql";
import {
  PlaygroundCreatePresetDocument,
  PlaygroundDeletePresetDocument,
  type PlaygroundPresetPartsFragment,
  PlaygroundPresetsDocument,
  PlaygroundUpdatePresetDocument,
} from "../../../client/generated/graphql.js";
import { Confirm } from "../../../ui/confirm.js";
import { DialogForm } from "../../../ui/dialog-form.js";
import { Card } from "../../../ui/page.js";
import { useServerForm } from "../../../ui/server-form.js";
import { Failure } from "../../../ui/states.js";
import { isSame, type PresetValues } from "./preset-values.js";

type Preset = PlaygroundPresetPartsFragment;

export interface PresetsProps {
  readonly chosenId: string | null;
  readonly onChoose: (preset: Preset | null) => void;
  /** The present settings. Null: they are invalid. */
  readonly values: PresetValues | null;
}

/** An empty list, too, is outdated by the type of its items. */
const AFFECTED = { additionalTypenames: ["Preset"] };

export function Presets({ chosenId, onChoose, values }: PresetsProps) {
  const [{ data, error }] = useQuery({ query: PlaygroundPresetsDocument, context: AFFECTED });
  const [{ fetching, error: saveError }, update] = useMutation(PlaygroundUpdatePresetDocument);
  const [, remove] = useMutation(PlaygroundDeletePresetDocument);
  const [dialog, setDialog] = useState<"create" | "rename" | null>(null);
  const presets = (data?.me?.presets?.nodes ?? []).toSorted((one, other) => one.name.localeCompare(other.name, "en"));
  const chosen = presets.find(({ id }) => id === chosenId) ?? null;
  const isChanged = chosen !== null && values !== null && !isSame(values, valuesOf(chosen));
  const save = async () => {
    if (chosen && values) await update({ input: { id: chosen.id, ...values } });
  };
  return (
    <Card>
      <Stack gap="sm">
        <Select
          label="Preset"
          description="Model, system prompt and parameters, saved in your account."
          placeholder={presets.length === 0 ? "No presets yet" : "None"}
          data={presets.map(({ id, name }) => ({ value: id, label: name }))}
          value={chosen?.id ?? null}
          onChange={(id) => onChoose(presets.find((preset) => preset.id === id) ?? null)}
          disabled={presets.length === 0}
          searchable
          clearable
          nothingFoundMessage="No preset has this name."
        />
        {chosen && (
          <Text size="xs" c="dimmed">
            Version {chosen.version}
            {isChanged && " · Unsaved changes"}
          </Text>
        )}
        {error && <Failure error={error} />}
        {saveError && <Failure error={saveError} />}
        <Group gap="xs">
          {chosen && (
            <Button size="compact-sm" onClick={save} loading={fetching} disabled={!isChanged}>
              Save
            </Button>
          )}
          <Button variant="default" size="compact-sm" onClick={() => setDialog("create")} disabled={values === null}>
            Save as preset
          </Button>
          {chosen && (
            <>
              <Button variant="default" size="compact-sm" onClick={() => setDialog("rename")}>
                Rename
              </Button>
              <Confirm
                title={`Delete the preset ${chosen.name}?`}
                action="Delete preset"
                onConfirm={async () => {
                  const { error: failure } = await remove({ input: { id: chosen.id } }, AFFECTED);
                  if (!failure) onChoose(null);
                  return failure;
                }}
                trigger={(ask) => (
                  <Button variant="default" size="compact-sm" onClick={ask}>
                    Delete
                  </Button>
                )}
              >
                It cannot be restored. The settings that you see stay as they are.
              </Confirm>
            </>
          )}
        </Group>
      </Stack>
      {dialog && (
        <NameDialog
          preset={dialog === "rename" ? chosen : null}
          values={values}
          onClose={() => setDialog(null)}
          onSaved={(preset) => {
            setDialog(null);
            onChoose(preset);
          }}
        />
      )}
    </Card>
  );
}

function valuesOf({ modelId, systemPrompt, parameters }: Preset): PresetValues {
  return { model: modelId, systemPrompt, parameters: parameters as PresetValues["parameters"] };
}

interface NameDialogProps {
  /** Null: a new one is created. */
  readonly preset: Preset | null;
  readonly values: PresetValues | null;
  readonly onClose: () => void;
  readonly onSaved: (preset: Preset) => void;
}

function NameDialog({ preset, values, onClose, onSaved }: NameDialogProps) {
  const [name, setName] = useState(preset?.name ?? "");
  const form = useServerForm(["name"]);
  const [, create] = useMutation(PlaygroundCreatePresetDocument);
  const [, update] = useMutation(PlaygroundUpdatePresetDocument);
  const submit = async () => {
    if (preset) {
      const answer = await update({ input: { id: preset.id, name } });
      if (form.accept(answer) && answer.data?.updatePreset) onSaved(answer.data.updatePreset.preset);
      return;
    }
    const answer = await create({ input: { name, ...values } }, AFFECTED);
    if (form.accept(answer) && answer.data?.createPreset) onSaved(answer.data.createPreset.preset);
  };
  return (
    <Modal opened onClose={onClose} title={preset ? "Rename preset" : "Save as preset"} centered>
      <DialogForm form={form} action={preset ? "Rename" : "Save preset"} onSubmit={submit} onCancel={onClose}>
        <TextInput
          label="Name"
          description="Lower-case letters, digits and hyphens, such as short-answers."
          data-autofocus
          maxLength={64}
          {...form.text("name", name, setName)}
        />
      </DialogForm>
    </Modal>
  );
}
