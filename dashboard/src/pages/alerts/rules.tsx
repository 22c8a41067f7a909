/** Rules of alerts, and the silences that have not ended. */
import { Button, Group, Stack, Switch, Table, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { useMutation } from "urql";
import { type Answer, useAnswer } from "../../client/answer.js";
import {
  type AlertRuleLineFragment,
  AlertsRulesDocument,
  type AlertsRulesQuery,
  AlertsUnsilenceDocument,
  AlertsUpdateRuleDocument,
} from "../../client/generated/graphql.js";
import { DialogForm } from "../../ui/dialog-form.js";
import { FormModal } from "../../ui/form-modal.js";
import { Card } from "../../ui/page.js";
import { useServerForm } from "../../ui/server-form.js";
import { Failure, Loading, QueryView } from "../../ui/states.js";
import { When } from "../../ui/when.js";
import { WideTable } from "../../ui/wide.js";
import { KINDS, parameterOf } from "./kinds.js";

type Silence = NonNullable<NonNullable<AlertsRulesQuery["me"]>["alertSilences"]>[number];

export function useRules(): Answer<AlertsRulesQuery> {
  return useAnswer({ query: AlertsRulesDocument });
}

export function Rules({ answer }: { readonly answer: Answer<AlertsRulesQuery> }) {
  return (
    <QueryView answer={answer} loading={<Loading rows={5} />}>
      {({ me }) => (
        <>
          <Silences silences={me?.alertSilences ?? []} onChanged={answer.refetch} />
          <Card title="Rules">
            <WideTable label="Rules" columns={["Rule", "Setting", "Status"]}>
              {(me?.alertRules ?? []).map((rule) => (
                <Rule key={rule.kind} rule={rule} onChanged={answer.refetch} />
              ))}
            </WideTable>
          </Card>
        </>
      )}
    </QueryView>
  );
}

interface RuleProps {
  readonly rule: AlertRuleLineFragment;
  readonly onChanged: () => void;
}

function Rule({ rule, onChanged }: RuleProps) {
  const [{ fetching, error }, update] = useMutation(AlertsUpdateRuleDocument);
  const [isEditing, setEditing] = useState(false);
  const { label, description } = KINDS[rule.kind];
  const parameter = parameterOf(rule);
  const toggle = async () => {
    const answer = await update({ input: { kind: rule.kind, isEnabled: !rule.isEnabled } });
    if (!answer.error) onChanged();
  };
  return (
    <Table.Tr>
      <Table.Td>
        <Text fw={600}>{label}</Text>
        <Text size="sm" c="dimmed">
          {description}
        </Text>
        {error && <Failure error={error} />}
      </Table.Td>
      <Table.Td>
        {parameter && (
          <Stack gap={4} align="flex-start">
            <Text size="sm">
              {parameter.label}: {parameter.text}
            </Text>
            <Button size="compact-xs" variant="default" onClick={() => setEditing(true)} aria-label={`Change ${label}`}>
              Change
            </Button>
            <FormModal opened={isEditing} onClose={() => setEditing(false)} title={label}>
              <ParameterForm rule={rule} onChanged={onChanged} onClose={() => setEditing(false)} />
            </FormModal>
          </Stack>
        )}
      </Table.Td>
      <Table.Td>
        <Switch checked={rule.isEnabled} disabled={fetching} onChange={toggle} label={rule.isEnabled ? "On" : "Off"} aria-label={label} />
      </Table.Td>
    </Table.Tr>
  );
}

function ParameterForm({ rule, onChanged, onClose }: RuleProps & { readonly onClose: () => void }) {
  const parameter = parameterOf(rule);
  const [text, setText] = useState(parameter?.text ?? "");
  const [, update] = useMutation(AlertsUpdateRuleDocument);
  const form = useServerForm(["percents", "days", "minimumSpend"]);
  if (parameter === null) return null;
  const { name, label } = parameter;
  const numbers = text.split(",").map((each) => (each.trim() === "" ? Number.NaN : Number(each)));
  const isNumber = numbers.every(Number.isInteger) && (name === "percents" || numbers.length === 1);
  const problem = name === "minimumSpend" || isNumber ? undefined : "Enter whole numbers";
  const submit = async () => {
    if (problem !== undefined) return;
    const value = name === "percents" ? { percents: numbers } : name === "days" ? { days: numbers[0] ?? 0 } : { minimumSpend: text };
    if (!form.accept(await update({ input: { kind: rule.kind, ...value } }))) return;
    onChanged();
    onClose();
  };
  return (
    <DialogForm form={form} action="Save" onSubmit={submit} onCancel={onClose}>
      <TextInput
        label={label}
        description={name === "percents" ? "Separated by commas." : undefined}
        {...form.text(name, text, setText)}
        error={problem ?? form.errorOf(name)}
        data-autofocus
      />
    </DialogForm>
  );
}

function Silences({ silences, onChanged }: { readonly silences: readonly Silence[]; readonly onChanged: () => void }) {
  const [{ fetching, error }, end] = useMutation(AlertsUnsilenceDocument);
  if (silences.length === 0) return null;
  const endOne = async ({ kind, subjectId }: Silence) => {
    const answer = await end({ input: { kind, subjectId } });
    if (!answer.error) onChanged();
  };
  return (
    <Card title="Silences">
      {error && <Failure error={error} />}
      <Stack gap="xs">
        {silences.map((silence) => (
          <Group key={`${silence.kind} ${silence.subjectId}`} justify="space-between" gap="xs">
            <Text size="sm" className="any-wrap">
              {KINDS[silence.kind].label}
              {silence.subjectId === null ? ": all" : `: ${silence.subjectId}`}
              {silence.until !== null && (
                <>
                  {", until "}
                  <When value={silence.until} />
                </>
              )}
            </Text>
            <Button size="compact-sm" variant="default" loading={fetching} onClick={() => endOne(silence)}>
              End silence
            </Button>
          </Group>
        ))}
      </Stack>
    </Card>
  );
}
