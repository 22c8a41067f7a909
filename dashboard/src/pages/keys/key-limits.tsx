/** Limits of a key that renew: the usage of their windows, adding one and removing one. */
import { Button, Checkbox, Group, Progress, Select, Stack, Table, Text, TextInput } from "@mantine/core";
import { useMemo, useState } from "react";
import { useMutation } from "urql";
import { useAnswer } from "../../client/answer.js";
import {
  type KeyLimitFragment,
  KeysAddLimitDocument,
  KeysLimitsDocument,
  KeysRemoveLimitDocument,
  type UsageLimitMetric,
  type UsageLimitPeriod,
} from "../../client/generated/graphql.js";
import { Confirm } from "../../ui/confirm.js";
import { DialogForm } from "../../ui/dialog-form.js";
import { FormModal } from "../../ui/form-modal.js";
import { Card } from "../../ui/page.js";
import { useServerForm } from "../../ui/server-form.js";
import { When } from "../../ui/when.js";
import { WideTable } from "../../ui/wide.js";

const METRICS: Readonly<Record<UsageLimitMetric, string>> = {
  CREDITS: "credits",
  REQUESTS: "requests",
  TOKENS: "tokens",
  CONCURRENCY: "requests at once",
};
const PERIODS: Readonly<Record<UsageLimitPeriod, string>> = { HOUR: "hour", DAY: "day", WEEK: "week", MONTH: "month" };

/** `isEditable`: false for a key that has ended. */
export function KeyLimits({ id, isEditable }: { readonly id: string; readonly isEditable: boolean }) {
  const { data, refetch } = useAnswer({ query: KeysLimitsDocument, variables: useMemo(() => ({ id }), [id]) });
  const [isAdding, setAdding] = useState(false);
  const [, remove] = useMutation(KeysRemoveLimitDocument);
  const limits = data?.me?.usageLimits?.nodes ?? [];
  if (limits.length === 0 && !isEditable) return null;
  const removeOne = async (limitId: string) => {
    const { error } = await remove({ input: { id: limitId } });
    if (!error) refetch();
    return error;
  };
  return (
    <Card
      title="Limits that renew"
      actions={
        isEditable && (
          <Button size="compact-sm" variant="default" onClick={() => setAdding(true)}>
            Add limit
          </Button>
        )
      }
    >
      <FormModal opened={isAdding} onClose={() => setAdding(false)} title="Add limit">
        <AddLimit apiKeyId={id} onAdded={refetch} onClose={() => setAdding(false)} />
      </FormModal>
      {limits.length === 0 ? (
        <Text size="sm" c="dimmed">
          No limits by hour, day, week or month.
        </Text>
      ) : (
        <WideTable label="Limits of this key" columns={["Limit", "Window", "Model", "Used", "Renews", ...(isEditable ? [""] : [])]}>
          {limits.map((limit) => (
            <Table.Tr key={limit.id}>
              <Table.Td>
                {limit.amount} {METRICS[limit.metric]}
              </Table.Td>
              <Table.Td>{windowOf(limit)}</Table.Td>
              <Table.Td>{limit.modelId ?? "All models"}</Table.Td>
              <Table.Td>
                <Used {...limit} />
              </Table.Td>
              <Table.Td>{limit.usage?.renewsAt ? <When value={limit.usage.renewsAt} /> : "–"}</Table.Td>
              {isEditable && (
                <Table.Td>
                  <Confirm
                    title="Remove this limit?"
                    action="Remove limit"
                    onConfirm={() => removeOne(limit.id)}
                    trigger={(open) => (
                      <Button size="compact-xs" variant="default" onClick={open}>
                        Remove
                      </Button>
                    )}
                  >
                    <Text>
                      The key may then use more than {limit.amount} {METRICS[limit.metric]} in that window.
                    </Text>
                  </Confirm>
                </Table.Td>
              )}
            </Table.Tr>
          ))}
        </WideTable>
      )}
    </Card>
  );
}

interface AddLimitProps {
  readonly apiKeyId: string;
  readonly onAdded: () => void;
  readonly onClose: () => void;
}

function AddLimit({ apiKeyId, onAdded, onClose }: AddLimitProps) {
  const form = useServerForm(["amount", "metric", "period", "model", "timeZone", "rolling"]);
  const [amount, setAmount] = useState("");
  const [metric, setMetric] = useState<UsageLimitMetric>("CREDITS");
  const [period, setPeriod] = useState<UsageLimitPeriod>("DAY");
  const [isRolling, setRolling] = useState(false);
  const [model, setModel] = useState("");
  const [, add] = useMutation(KeysAddLimitDocument);
  const hasWindow = metric !== "CONCURRENCY";
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  const submit = async () => {
    const input = {
      ...{ apiKeyId, amount: amount.trim(), metric },
      ...(hasWindow && { period, rolling: isRolling, ...(!isRolling && { timeZone }) }),
      ...(model.trim() !== "" && { model: model.trim() }),
    };
    if (!form.accept(await add({ input }))) return;
    onAdded();
    onClose();
  };
  return (
    <DialogForm form={form} action="Add limit" onSubmit={submit} onCancel={onClose}>
      <Group grow align="flex-start">
        <TextInput label="At most" inputMode="decimal" data-autofocus {...form.text("amount", amount, setAmount)} />
        <Select
          label="Of"
          data={Object.entries(METRICS).map(([value, label]) => ({ value, label }))}
          allowDeselect={false}
          value={metric}
          onChange={(value) => setMetric(value as UsageLimitMetric)}
          error={form.errorOf("metric")}
        />
      </Group>
      {hasWindow && (
        <Stack gap="xs">
          <Select
            label="Each"
            data={Object.entries(PERIODS).map(([value, label]) => ({ value, label }))}
            allowDeselect={false}
            value={period}
            onChange={(value) => setPeriod(value as UsageLimitPeriod)}
            error={form.errorOf("period")}
          />
          <Checkbox
            label="Count the time until now, without a start of day, week or month"
            checked={isRolling}
            onChange={({ target }) => setRolling(target.checked)}
          />
          {!isRolling && (
            <Text size="xs" c="dimmed">
              Windows begin in your time zone, {timeZone}.
            </Text>
          )}
        </Stack>
      )}
      <TextInput label="Model" placeholder="All models" {...form.text("model", model, setModel)} />
    </DialogForm>
  );
}

function Used({ usage, alertAt, metric }: KeyLimitFragment) {
  if (!usage || metric === "CONCURRENCY") return null;
  const isAlerted = alertAt.some((percent) => usage.percent >= percent);
  return (
    <Stack gap={4}>
      <Text size="sm">
        {usage.spent} ({usage.percent}%)
      </Text>
      <Progress
        value={usage.percent}
        color={isAlerted || usage.percent >= 90 ? "orange" : "blue"}
        size="sm"
        aria-label={`${usage.percent}% used`}
      />
    </Stack>
  );
}

function windowOf({ period, minutes, isRolling, timeZone, metric }: KeyLimitFragment): string {
  if (metric === "CONCURRENCY") return "–";
  const length = period === null ? `${minutes} minutes` : PERIODS[period];
  return isRolling ? `Last ${length}` : `Each ${length}, ${timeZone}`;
}
