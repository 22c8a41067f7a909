/** Earnings from models and apps: sums, days, and turning them into credits. */
import { Button, Group, Stack, Table, Text, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { useMutation, useQuery, useSubscription } from "urql";
import {
  ConvertEarningsDocument,
  type EarningDayFragment,
  MyEarningsDocument,
  MyEarningsRecordedDocument,
} from "../../client/generated/graphql.js";
import { useCombined } from "../../client/use-combined.js";
import { Credits, formatCredits } from "../../ui/credits.js";
import { Card } from "../../ui/page.js";
import { useServerForm } from "../../ui/server-form.js";
import { Failure } from "../../ui/states.js";
import { WideTable } from "../../ui/wide.js";

/** Nothing for an account that has earned nothing yet. */
export function Earnings() {
  const [{ data, error }, refetch] = useQuery({ query: MyEarningsDocument });
  const schedule = useCombined(() => refetch({ requestPolicy: "network-only" }));
  useSubscription({ query: MyEarningsRecordedDocument }, (_, event) => {
    schedule();
    return event;
  });
  const earnings = data?.me?.earnings;
  if (error) return <Failure error={error} />;
  if (
    !earnings ||
    [earnings.pending, earnings.available, earnings.converted, earnings.paidOut, earnings.reversed].every((sum) => sum === "0")
  )
    return null;
  return (
    <Card title="Earnings">
      <Stack gap="sm">
        <Group gap="xl">
          <Sum label="Pending" credits={earnings.pending} />
          <Sum label="Available" credits={earnings.available} />
          <Sum label="Converted" credits={earnings.converted} />
          <Sum label="Paid out" credits={earnings.paidOut} />
        </Group>
        <Text size="sm" c="dimmed">
          You earn a share of the charges of others for your public models, and the margin of your apps. Earnings become available after
          seven days.
        </Text>
        {earnings.available !== "0" && <Convert available={earnings.available} onDone={() => refetch({ requestPolicy: "network-only" })} />}
        <Days days={earnings.daily} />
      </Stack>
    </Card>
  );
}

function Sum({ label, credits }: { readonly label: string; readonly credits: string }) {
  return (
    <div>
      <Text size="xs" c="dimmed">
        {label}
      </Text>
      <Text fw={600}>{formatCredits(credits)}</Text>
    </div>
  );
}

/** Repeated submits of one form convert once. */
function Convert({ available, onDone }: { readonly available: string; readonly onDone: () => void }) {
  const form = useServerForm(["credits"]);
  const [credits, setCredits] = useState(available);
  const [conversionId, setConversionId] = useState(() => crypto.randomUUID());
  const [{ fetching }, convert] = useMutation(ConvertEarningsDocument);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (!form.accept(await convert({ input: { credits: credits.trim(), conversionId } }))) return;
    setConversionId(crypto.randomUUID());
    onDone();
  };
  return (
    <form onSubmit={(event) => void submit(event)} noValidate>
      <Stack gap="xs">
        {form.rest && <Failure error={form.rest} />}
        <Group align="flex-end" gap="sm">
          <TextInput label="Turn into credits to spend" inputMode="decimal" maw="16rem" {...form.text("credits", credits, setCredits)} />
          <Button type="submit" variant="default" loading={fetching}>
            Convert
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

const KINDS: Readonly<Record<EarningDayFragment["kind"], string>> = { MODEL: "model", APP: "app" };

function Days({ days }: { readonly days: readonly EarningDayFragment[] }) {
  if (days.length === 0) return null;
  return (
    <WideTable label="Earnings by day" columns={["Day (UTC)", "From", { amount: "Requests" }, { amount: "Credits" }, "State"]}>
      {days.map(({ date, kind, source, requests, credits, reversed, maturedAt }) => (
        <Table.Tr key={`${date} ${kind} ${source}`}>
          <Table.Td>{date}</Table.Td>
          <Table.Td className="any-wrap">
            {KINDS[kind]} {source}
          </Table.Td>
          <Table.Td ta="right">{requests}</Table.Td>
          <Table.Td ta="right">
            <Credits value={credits} />
          </Table.Td>
          <Table.Td>
            {maturedAt === null ? "pending" : "available"}
            {reversed !== "0" && `, ${formatCredits(reversed)} taken back`}
          </Table.Td>
        </Table.Tr>
      ))}
    </WideTable>
  );
}
