/** Limits that renew: the usage of their windows, adding one and removing one. For a key, an account, or models over all accounts. */
import { Button, Checkbox, Group, Progress, Select, Stack, Table, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { useMutation } from "urql";
import {
  LimitsAddDocument,
  LimitsRemoveDocument,
  type UsageLimitMetric,
  type UsageLimitPeriod,
  type UsageLimitRowFragment,
} from "../client/generated/graphql.js";
import { Confirm } from "./confirm.js";
import { DialogForm } from "./dialog-form.js";
import { FormModal } from "./form-modal.js";
import { Card } from "./page.js";
import { useServerForm } from "./server-form.js";
import { When } from "./when.js";
import { WideTable } from "./wide.js";

/** A new limit is of this. */
export type LimitPlace = { readonly apiKeyId: string } | { readonly accountId: string } | { readonly allAccounts: true };

const METRICS: Readonly<Record<UsageLimitMetric, string>> = {
  CREDITS: "credits",
  REQUESTS: "requests",
  TOKENS: "tokens",
  CONCURRENCY: "requests at once",
};
const PERIODS: Readonly<Record<UsageLimitPeriod, string>> = { HOUR: "hour", DAY: "day", WEEK: "week", MONTH: "month" };
/** Not a period of the API, but a window of one minute. */
const MINUTE = "MINUTE";

interface UsageLimitsProps {
  readonly title: string;
  readonly place: LimitPlace;
  /** In sentences, such as "The key". */
  readonly subject: string;
  /** Without any limit. */
  readonly none: string;
  readonly limits: readonly UsageLimitRowFragment[];
  readonly isEditable?: boolean;
  readonly onChange: () => void;
}

export function UsageLimits({ title, place, subject, none, limits, isEditable = true, onChange }: UsageLimitsProps) {
  const [isAdding, setAdding] = useState(false);
  const [, remove] = useMutation(LimitsRemoveDocument);
  const removeOne = async (limitId: string) => {
    const { error } = await remove({ input: { id: limitId } });
    if (!error) onChange();
    return error;
  };
  return (
    <Card
      title={title}
      actions={
        isEditable && (
          <Button size="compact-sm" variant="default" onClick={() => setAdding(true)}>
            Add limit
          </Button>
        )
      }
    >
      <FormModal opened={isAdding} onClose={() => setAdding(false)} title="Add limit">
        <AddLimit place={place} onAdded={onChange} onClose={() => setAdding(false)} />
      </FormModal>
      {limits.length === 0 ? (
        <Text size="sm" c="dimmed">
          {none}
        </Text>
      ) : (
        <WideTable label={title} columns={["Limit", "Window", "Model", "Used", "Renews", ...(isEditable ? [""] : [])]}>
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
                      {limit.modelId !== null && "allAccounts" in place ? limit.modelId : subject} may then use more than {limit.amount}{" "}
                      {METRICS[limit.metric]}
                      {limit.metric === "CONCURRENCY" ? "." : " in that window."}
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
  readonly place: LimitPlace;
  readonly onAdded: () => void;
  readonly onClose: () => void;
}

function AddLimit({ place, onAdded, onClose }: AddLimitProps) {
  const isOfModel = "allAccounts" in place;
  const form = useServerForm(["amount", "metric", "period", "model", "timeZone", "rolling"]);
  const [amount, setAmount] = useState("");
  const [metric, setMetric] = useState<UsageLimitMetric>(isOfModel ? "REQUESTS" : "CREDITS");
  const [period, setPeriod] = useState<UsageLimitPeriod | typeof MINUTE>(isOfModel ? MINUTE : "DAY");
  const [isRolling, setRolling] = useState(isOfModel);
  const [model, setModel] = useState("");
  const [, add] = useMutation(LimitsAddDocument);
  const hasWindow = metric !== "CONCURRENCY";
  const metrics = Object.entries(METRICS).filter(([value]) => !isOfModel || value !== "CREDITS");
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  const submit = async () => {
    const window = period === MINUTE ? { minutes: 1 } : { period };
    const input = {
      ...{ ...place, amount: amount.trim(), metric },
      ...(hasWindow && { ...window, rolling: isRolling, ...(!isRolling && { timeZone }) }),
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
          data={metrics.map(([value, label]) => ({ value, label }))}
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
            data={[{ value: MINUTE, label: "minute" }, ...Object.entries(PERIODS).map(([value, label]) => ({ value, label }))]}
            allowDeselect={false}
            value={period}
            onChange={(value) => setPeriod(value as UsageLimitPeriod | typeof MINUTE)}
            error={form.errorOf("period")}
          />
          <Checkbox
            label="Count the time until now, without a start of minute, day, week or month"
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
      <TextInput label="Model" placeholder={isOfModel ? "vendor/model" : "All models"} {...form.text("model", model, setModel)} />
      {isOfModel && (
        <Text size="xs" c="dimmed">
          All accounts together. Requests beyond it are refused, even when a route of the model has room.
        </Text>
      )}
    </DialogForm>
  );
}

function Used({ usage, alertAt, metric }: UsageLimitRowFragment) {
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

function windowOf({ period, minutes, isRolling, timeZone, metric }: UsageLimitRowFragment): string {
  if (metric === "CONCURRENCY") return "–";
  const length = period !== null ? PERIODS[period] : minutes === 1 ? "minute" : `${minutes} minutes`;
  return isRolling ? `Last ${length}` : `Each ${length}, ${timeZone}`;
}
