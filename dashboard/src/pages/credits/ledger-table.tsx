/** Ledger of an account: credits added, used and taken back, with the balance after each. */
import { Anchor, Group, Stack, Table, Text } from "@mantine/core";
import { Link } from "react-router";
import type { LedgerLineKind, LedgerRowFragment, MeterSource } from "../../client/generated/graphql.js";
import { formatCount } from "../../ui/amounts.js";
import { Credits } from "../../ui/credits.js";
import { DAY_MS } from "../../ui/days.js";
import { Pager, type PagerProps } from "../../ui/pager.js";
import { Empty } from "../../ui/states.js";
import { When } from "../../ui/when.js";
import { Wide } from "../../ui/wide.js";

const KINDS: Readonly<Record<LedgerLineKind, string>> = {
  GRANT: "Credits added",
  REFILL: "Free refill",
  CHARGE: "Usage",
  WITHDRAWAL: "Taken back",
  FORFEIT: "Forfeited",
  PURCHASE: "Purchase",
  REFUND: "Refund",
  EXPIRY: "Expired",
  CONVERSION: "Converted earnings",
};
const BUCKETS: Readonly<Record<MeterSource, string>> = { TIER: "free", CRYPTO: "purchased with crypto", PACK: "purchased" };
const DAY = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeZone: "UTC" });

export interface LedgerProps extends LedgerTableProps {
  readonly after: string | null;
  readonly pageInfo: PagerProps["pageInfo"];
  readonly onMove: (after: string | null) => void;
}

/** One page of the ledger. */
export function Ledger({ lines, requestsOf, ...page }: LedgerProps) {
  if (lines.length === 0) return <Empty title="No entries yet">Grants, refills and charges appear here.</Empty>;
  return (
    <Stack gap="sm">
      <LedgerTable lines={lines} {...(requestsOf && { requestsOf })} />
      <Text size="xs" c="dimmed">
        Days are in UTC. The charges of a day count at its end.
      </Text>
      <Pager {...page} next="Older entries" />
    </Stack>
  );
}

interface LedgerTableProps {
  readonly lines: readonly LedgerRowFragment[];
  /** Address of the requests of a day, by its start and end; absent: no links. */
  readonly requestsOf?: (from: string, to: string) => string;
}

function LedgerTable({ lines, requestsOf }: LedgerTableProps) {
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
                <Entry line={line} {...(requestsOf && { requestsOf })} />
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

function Entry({
  line: { kind, bookedAt, bucket, note, requests, expiresAt },
  requestsOf,
}: { readonly line: LedgerRowFragment } & Pick<LedgerTableProps, "requestsOf">) {
  if (kind === "CHARGE") {
    const text = formatCount(requests ?? 0, "request", "requests");
    if (!requestsOf) return <span>{text}</span>;
    const to = new Date(Date.parse(bookedAt) + DAY_MS).toISOString();
    return (
      <Anchor component={Link} to={requestsOf(bookedAt, to)} size="sm">
        {text}
      </Anchor>
    );
  }
  const isAhead = expiresAt !== null && Date.parse(expiresAt) > Date.now();
  return (
    <Stack gap={0}>
      <Group gap={6}>
        <span>{KINDS[kind]}</span>
        {bucket !== null && (kind === "GRANT" || kind === "WITHDRAWAL") && (
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
