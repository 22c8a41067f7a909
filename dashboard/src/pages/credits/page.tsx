/** Credits page: balance, how to get more, and the ledger of the account. */
import { Anchor, Group, Stack, Table, Text } from "@mantine/core";
import { useState } from "react";
import { Link } from "react-router";
import { useAnswer, useRefetchOnChange } from "../../client/answer.js";
import { CreditsLedgerDocument, type CreditsLedgerQuery, type LedgerLineKind, type MeterSource } from "../../client/generated/graphql.js";
import { prefetch } from "../../client/graphql.js";
import { Balances, GetCredits, Refill } from "../../shell/balances.js";
import { useLive } from "../../shell/live.js";
import { addressOf } from "../../shell/pages.js";
import { formatCount } from "../../ui/amounts.js";
import { Credits, formatCredits } from "../../ui/credits.js";
import { DAY_MS } from "../../ui/days.js";
import { Card, Page } from "../../ui/page.js";
import { Pager } from "../../ui/pager.js";
import { Empty, Loading, QueryView } from "../../ui/states.js";
import { When } from "../../ui/when.js";
import { Wide } from "../../ui/wide.js";

export function start(): void {
  prefetch(CreditsLedgerDocument, {});
}

export function Component() {
  return (
    <Page title="Credits" description="Your balance, and where credits came from and went.">
      <Balances />
      <Card title="Get credits">
        <Text size="sm">
          <Refill />
        </Text>
        <GetCredits hasLedgerLink={false} />
        <Threshold />
      </Card>
      <Ledger />
    </Page>
  );
}

function Threshold() {
  const { me } = useLive();
  const threshold = me?.lowBalance?.threshold ?? null;
  return (
    <Text size="sm" c="dimmed" mt="xs">
      {threshold === null ? "No low-balance alert is set." : `You are alerted when the balance falls below ${formatCredits(threshold)}.`}{" "}
      <Anchor component={Link} to={addressOf("account")} inherit underline="always">
        {threshold === null ? "Set an alert" : "Change the alert"}
      </Anchor>
    </Text>
  );
}

function Ledger() {
  const [after, setAfter] = useState<string | null>(null);
  const answer = useAnswer({ query: CreditsLedgerDocument, variables: after === null ? {} : { after } });
  const { chargedAt } = useLive();
  useRefetchOnChange(chargedAt, answer.refetch);
  return (
    <Card title="History">
      <QueryView answer={answer} loading={<Loading rows={6} height={28} />}>
        {({ me }) => {
          const { nodes = [], pageInfo } = me?.ledger ?? {};
          return nodes.length === 0 ? (
            <Empty title="No entries yet">Grants, refills and charges appear here.</Empty>
          ) : (
            <Stack gap="sm">
              <Lines lines={nodes} />
              <Text size="xs" c="dimmed">
                Days are in UTC. The charges of a day count at its end.
              </Text>
              <Pager after={after} pageInfo={pageInfo} onMove={setAfter} next="Older entries" />
            </Stack>
          );
        }}
      </QueryView>
    </Card>
  );
}

type Line = NonNullable<NonNullable<CreditsLedgerQuery["me"]>["ledger"]>["nodes"][number];

const KINDS: Readonly<Record<LedgerLineKind, string>> = {
  GRANT: "Credits added",
  REFILL: "Free refill",
  CHARGE: "Usage",
  WITHDRAWAL: "Taken back",
  FORFEIT: "Forfeited",
};
const BUCKETS: Readonly<Record<MeterSource, string>> = { TIER: "free", CRYPTO: "purchased with crypto", PACK: "purchased" };
const DAY = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeZone: "UTC" });

function Lines({ lines }: { readonly lines: readonly Line[] }) {
  return (
    <Wide label="Ledger">
      <Table className="slim" verticalSpacing="xs">
        <Table.Thead>
          <Table.Tr>
            <Table.Th visibleFrom="sm">Date</Table.Th>
            <Table.Th>Entry</Table.Th>
            <Table.Th ta="right">Credits</Table.Th>
            <Table.Th ta="right">Balance</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {lines.map((line) => (
            <Table.Tr key={line.id}>
              <Table.Td style={{ whiteSpace: "nowrap" }} visibleFrom="sm">
                {DAY.format(new Date(line.bookedAt))}
              </Table.Td>
              <Table.Td>
                <Text size="xs" c="dimmed" hiddenFrom="sm">
                  {DAY.format(new Date(line.bookedAt))}
                </Text>
                <Entry line={line} />
              </Table.Td>
              <Table.Td ta="right">
                {!line.credits.startsWith("-") && "+"}
                <Credits value={line.credits} />
              </Table.Td>
              <Table.Td ta="right">
                <Credits value={line.balanceAfter} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Wide>
  );
}

function Entry({ line: { kind, bookedAt, bucket, note, requests, expiresAt } }: { readonly line: Line }) {
  if (kind === "CHARGE") {
    const to = new Date(Date.parse(bookedAt) + DAY_MS).toISOString();
    return (
      <Anchor component={Link} to={`${addressOf("usage")}?${new URLSearchParams({ from: bookedAt, to })}`} size="sm">
        {formatCount(requests ?? 0, "request", "requests")}
      </Anchor>
    );
  }
  const isAhead = expiresAt !== null && Date.parse(expiresAt) > Date.now();
  return (
    <Stack gap={0}>
      <Group gap={6}>
        <span>{KINDS[kind]}</span>
        {bucket !== null && kind === "GRANT" && (
          <Text size="xs" c="dimmed">
            {BUCKETS[bucket]}
          </Text>
        )}
      </Group>
      {note !== null && (
        <Text size="xs" c="dimmed" className="any-wrap">
          <bdi>{kind === "REFILL" ? `tier ${note}` : note}</bdi>
        </Text>
      )}
      {expiresAt !== null && (
        <Text size="xs" c="dimmed">
          {isAhead ? "expires" : "expired"} <When value={expiresAt} />
        </Text>
      )}
    </Stack>
  );
}
