/** Rows of the audit log. */
import { Anchor, Table, Text } from "@mantine/core";
import { Link } from "react-router";
import type { AuditAct, AuditRowFragment } from "../../client/generated/graphql.js";
import { exactTime, When } from "../../ui/when.js";
import { Wide } from "../../ui/wide.js";
import { accountAddress } from "./parts.js";

export const ACTS: Readonly<Record<AuditAct, string>> = {
  CREATE_ACCOUNT: "Created account",
  GRANT_CREDITS: "Granted credits",
  WITHDRAW_CREDITS: "Took back credits",
  REFUND_TOP_UP: "Paid a top-up back",
  SELL_CREDITS: "Sold credits on an invoice",
  RECORD_PAYMENT: "Booked a payment",
  RECORD_PAYOUT: "Booked a payout",
  REVERSE_EARNINGS: "Took back earnings",
  LINK_ACCOUNTS: "Linked accounts",
  UNLINK_ACCOUNT: "Unlinked account",
  CREATE_USAGE_LIMIT: "Added usage limit",
  UPDATE_USAGE_LIMIT: "Changed usage limit",
  DELETE_USAGE_LIMIT: "Deleted usage limit",
  SET_TIER: "Changed tier",
  SET_PUBLISHER: "Changed publishing",
  SET_OPERATOR: "Changed operator role",
  SUSPEND_ACCOUNT: "Suspended account",
  RESTORE_ACCOUNT: "Restored account",
  REVOKE_API_KEY: "Revoked key",
  END_SESSIONS: "Ended sessions",
  CREATE_PASSWORD_LINK: "Created password link",
  USE_PASSWORD_LINK: "Set password by link",
  RETRY_SETTLEMENTS: "Retried charges",
  CREATE_VENDOR_KEY: "Added vendor key",
  UPDATE_VENDOR_KEY: "Changed vendor key",
  DELETE_VENDOR_KEY: "Deleted vendor key",
  UPDATE_ROUTE: "Changed route",
  ADD_ROUTE: "Added route",
  REMOVE_ROUTE: "Removed route",
  RESET_ROUTES: "Reset routes",
  SET_ROUTING: "Changed order of routes",
  CREATE_OWNER_KEY: "Created owner key",
  RESEAL_SECRETS: "Sealed secrets again",
  FORGET_SECRETS: "Accepted a lost encryption key",
};

export interface AuditTableProps {
  readonly entries: readonly AuditRowFragment[];
  readonly entryAddress: (id: string) => string;
  /** Whether every row is of the same account. */
  readonly isOfOneAccount?: boolean;
}

export function AuditTable({ entries, entryAddress, isOfOneAccount = false }: AuditTableProps) {
  return (
    <Wide label="Audit log">
      <Table className="slim" highlightOnHover verticalSpacing="xs">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Time</Table.Th>
            <Table.Th>Action</Table.Th>
            {!isOfOneAccount && <Table.Th visibleFrom="sm">Account</Table.Th>}
            <Table.Th visibleFrom="sm">Operator</Table.Th>
            <Table.Th visibleFrom="sm">From</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {entries.map((entry) => (
            <Table.Tr key={entry.id}>
              <Table.Td style={{ whiteSpace: "nowrap", verticalAlign: "top" }}>
                <Anchor component={Link} to={entryAddress(entry.id)} preventScrollReset fz="inherit">
                  <When value={entry.createdAt} />
                </Anchor>
              </Table.Td>
              <Table.Td style={{ verticalAlign: "top" }}>
                <Text size="sm" fw={500}>
                  {ACTS[entry.act]}
                </Text>
                <Text size="xs" c="dimmed" className="any-wrap" lineClamp={2}>
                  <bdi>{summaryOf(entry)}</bdi>
                </Text>
                <Text size="xs" c="dimmed" hiddenFrom="sm" className="any-wrap">
                  {!isOfOneAccount && entry.accountId !== null && (
                    <>
                      <AuditAccount entry={entry} />,{" "}
                    </>
                  )}
                  by <AuditActor entry={entry} />
                </Text>
              </Table.Td>
              {!isOfOneAccount && (
                <Table.Td visibleFrom="sm" className="any-wrap" miw={140} style={{ verticalAlign: "top" }}>
                  <AuditAccount entry={entry} />
                </Table.Td>
              )}
              <Table.Td visibleFrom="sm" className="any-wrap" miw={140} style={{ verticalAlign: "top" }}>
                <AuditActor entry={entry} />
              </Table.Td>
              <Table.Td visibleFrom="sm" style={{ verticalAlign: "top", whiteSpace: "nowrap" }}>
                {entry.address ?? "–"}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Wide>
  );
}

export function AuditActor({ entry: { actor, address } }: { readonly entry: AuditRowFragment }) {
  if (actor)
    return (
      <Anchor component={Link} inherit to={accountAddress(actor.id)}>
        <bdi>{actor.handle}</bdi>
      </Anchor>
    );
  return address === null ? "Command line" : "Not signed in";
}

export function AuditAccount({ entry: { account, accountId } }: { readonly entry: AuditRowFragment }) {
  if (account)
    return (
      <Anchor component={Link} inherit to={accountAddress(account.id)}>
        <bdi>{account.handle}</bdi>
      </Anchor>
    );
  return accountId === null ? "–" : "Deleted account";
}

/** Facts of an entry before or after the act, by name. */
export function factsOf(facts: unknown): readonly (readonly [name: string, value: string])[] {
  if (typeof facts !== "object" || facts === null) return [];
  return Object.entries(facts).map(([name, value]) => [toWords(name), toText(value)] as const);
}

/** The change in one line, and the reason. */
function summaryOf({ before, after, reason }: AuditRowFragment): string {
  const old = new Map(factsOf(before));
  const changes = factsOf(after).map(([name, value]) => {
    const was = old.get(name);
    return was === undefined || was === value ? `${name}: ${value}` : `${name}: ${was} → ${value}`;
  });
  return [...changes.slice(0, 3), ...(reason === null ? [] : [reason])].join(" · ");
}

/** `isRevoked` as "Revoked". */
function toWords(name: string): string {
  const words = name
    .replace(/^is(?=[A-Z])/, "")
    .replace(/Ids\b/, " IDs")
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .replace(/\bids\b/, "IDs")
    .replace(/\bapi\b/, "API");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

function toText(value: unknown): string {
  if (value === null) return "none";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string" && TIME.test(value)) return exactTime(value);
  return Array.isArray(value) ? value.join(", ") : String(value);
}
