/** Automatic top-ups: their settings, and why the last one failed. */
import { Alert, Button, Group, Stack, Switch, Text, TextInput } from "@mantine/core";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { useMutation } from "urql";
import { useAnswer } from "../../client/answer.js";
import { type AutoTopUpFieldsFragment, CreditsAutoTopUpDocument, UpdateAutoTopUpDocument } from "../../client/generated/graphql.js";
import { useLive } from "../../shell/live.js";
import { Card } from "../../ui/page.js";
import { useServerForm } from "../../ui/server-form.js";
import { Failure, QueryView } from "../../ui/states.js";
import { toast } from "../../ui/toast.js";
import { When } from "../../ui/when.js";

/** An attempt begins a moment after the charge that makes it due. */
const ATTEMPT_MS = 1_500;

/** `onAttempt`: a payment may have been made or have failed. */
export function AutoTopUpCard({ onAttempt }: { readonly onAttempt: () => void }) {
  const answer = useAnswer({ query: CreditsAutoTopUpDocument });
  const { refetch } = answer;
  // The form stays, with everything that was entered, also when the settings cannot be refetched.
  const known = useRef<AutoTopUpFieldsFragment | null>(undefined);
  if (answer.data?.me) known.current = answer.data.me.autoTopUp;
  const current = known.current;
  const available = useLive().balance?.available;
  const [savedAt, setSavedAt] = useState(0);
  useEffect(() => {
    if (available === undefined && savedAt === 0) return;
    const timer = setTimeout(() => {
      refetch();
      onAttempt();
    }, ATTEMPT_MS);
    return () => clearTimeout(timer);
  }, [available, savedAt, refetch, onAttempt]);
  return (
    <Card title="Automatic top-ups">
      {current === undefined ? (
        <QueryView answer={answer}>{() => null}</QueryView>
      ) : (
        <Stack gap="sm">
          {answer.error && <Failure error={answer.error} retry={refetch} />}
          {current && <State state={current} />}
          <Form current={current} onSaved={() => setSavedAt(Date.now())} />
        </Stack>
      )}
    </Card>
  );
}

function State({ state: { isEnabled, isPending, problem, nextAttemptAt, gaveUpAt } }: { readonly state: AutoTopUpFieldsFragment }) {
  if (isPending) {
    return (
      <Text size="sm" role="status">
        A payment is under way.
      </Text>
    );
  }
  if (problem === null || !isEnabled) return null;
  return (
    <Alert
      color={gaveUpAt === null ? "orange" : "red"}
      title={gaveUpAt === null ? "The last top-up was not made" : "Automatic top-ups stopped"}
    >
      <Text size="sm" className="any-wrap">
        {problem}
      </Text>
      <Text size="sm">
        {gaveUpAt !== null && "Payments failed repeatedly. Check your payment method, then save the settings to start again."}
        {gaveUpAt === null && nextAttemptAt !== null && (
          <>
            The next attempt is <When value={nextAttemptAt} />.
          </>
        )}
      </Text>
    </Alert>
  );
}

function Form({ current, onSaved }: { readonly current: AutoTopUpFieldsFragment | null; readonly onSaved: () => void }) {
  const form = useServerForm(["threshold", "amount", "monthlyCap"]);
  const [isEnabled, setEnabled] = useState(current?.isEnabled ?? false);
  const [threshold, setThreshold] = useState(current?.threshold ?? "5");
  const [amount, setAmount] = useState(current?.amount ?? "25");
  const [monthlyCap, setMonthlyCap] = useState(current?.monthlyCap ?? "100");
  const [{ fetching }, update] = useMutation(UpdateAutoTopUpDocument);
  const save = async (event: FormEvent) => {
    event.preventDefault();
    const input = { isEnabled, threshold: threshold.trim(), amount: amount.trim(), monthlyCap: monthlyCap.trim() };
    if (!form.accept(await update({ input }))) return;
    toast({ color: "teal", title: "Saved", message: isEnabled ? "Automatic top-ups are on." : "Automatic top-ups are off." });
    onSaved();
  };
  return (
    <form onSubmit={(event) => void save(event)} noValidate>
      <Stack gap="sm">
        {form.rest && <Failure error={form.rest} />}
        <Switch label="Buy credits when the balance is low" checked={isEnabled} onChange={({ target }) => setEnabled(target.checked)} />
        <Group gap="md" align="flex-start">
          <TextInput label="When the balance falls below" inputMode="decimal" {...form.text("threshold", threshold, setThreshold)} />
          <TextInput label="Credits to buy each time" inputMode="decimal" {...form.text("amount", amount, setAmount)} />
          <TextInput label="Most credits in a month" inputMode="decimal" {...form.text("monthlyCap", monthlyCap, setMonthlyCap)} />
        </Group>
        <Text size="xs" c="dimmed">
          The payment method of your next purchase is saved while this is on. Months are in UTC.
        </Text>
        <Group>
          <Button type="submit" variant="default" loading={fetching}>
            Save
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
