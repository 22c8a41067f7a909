/** Audit log: acts of operators, newest first, with filters, and a drawer with the values before and after. */
import { Alert, Button, Group, Select, Stack, Text, TextInput } from "@mantine/core";
import { useMemo } from "react";
import { useNavigate, useSearchParams } from "react-router";
import { useAnswer } from "../../client/answer.js";
import {
  type AuditAct,
  type AuditFilter,
  type AuditRowFragment,
  OperatorAuditDocument,
  OperatorAuditEntryDocument,
  type OperatorAuditQueryVariables,
} from "../../client/generated/graphql.js";
import { Copyable } from "../../ui/copy.js";
import { DAY_MS } from "../../ui/days.js";
import { DownloadButton } from "../../ui/download.js";
import { EntryDrawer } from "../../ui/entry-drawer.js";
import { Fact, Facts } from "../../ui/facts.js";
import { Card } from "../../ui/page.js";
import { Pager } from "../../ui/pager.js";
import { Empty, Loading, QueryView } from "../../ui/states.js";
import { When } from "../../ui/when.js";
import { AccountSelect } from "./account-select.js";
import { ACTS, AuditAccount, AuditActor, AuditTable, factsOf } from "./audit-table.js";
import { AUDIT, OPERATOR, OperatorPage } from "./parts.js";

const PAGE_ROWS = 50;
/** Limit of the gateway. */
const CSV_ROWS_MAX = 50_000;
const FILTERS = ["actor", "account", "action", "from", "to"] as const;
type FilterName = (typeof FILTERS)[number];
const DAY_PATTERN = /^\d{4}-\d{2}-\d{2}$/;
const ACT_NAMES = new Map(Object.entries(ACTS)) as ReadonlyMap<string, string>;

/** Start of a UTC day; undefined for texts that are no day. */
function dayStart(text: string | null): number | undefined {
  const time = text !== null && DAY_PATTERN.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(time) ? undefined : time;
}

/** Filters in the address. Unknown values are ignored. */
function readFilter(query: URLSearchParams): AuditFilter {
  const [actor, account, action] = ["actor", "account", "action"].map((name) => query.get(name) || null);
  const [from, to] = [dayStart(query.get("from")), dayStart(query.get("to"))];
  return {
    ...(actor && { actorAccountIds: [actor] }),
    ...(account && { accountIds: [account] }),
    ...(action && ACT_NAMES.has(action) && { acts: [action as AuditAct] }),
    ...(from !== undefined && { from: new Date(from).toISOString() }),
    // The last day is included.
    ...(to !== undefined && { to: new Date(to + DAY_MS).toISOString() }),
  };
}

export function toAuditVariables(query: URLSearchParams): OperatorAuditQueryVariables {
  const after = query.get("after");
  return { first: PAGE_ROWS, filter: readFilter(query), ...(after && { after }) };
}

/** The table has all rows that match, newest first, up to the limit of one file. */
function toCsvPath({ acts, accountIds, actorAccountIds, from, to }: AuditFilter): string {
  const parameters = new URLSearchParams({ format: "csv", limit: String(CSV_ROWS_MAX) });
  const lists = { acts: acts?.map((act) => act.toLowerCase()), account_ids: accountIds, actor_account_ids: actorAccountIds };
  for (const [name, values] of Object.entries(lists)) if (values) parameters.set(name, values.join(","));
  for (const [name, time] of Object.entries({ from, to })) if (time) parameters.set(name, time);
  return `/account/operator/audit?${parameters}`;
}

export function AuditLog({ id }: { readonly id: string | null }) {
  const [query, setQuery] = useSearchParams();
  const navigate = useNavigate();
  const text = query.toString();
  const search = text === "" ? "" : `?${text}`;
  const variables = useMemo(() => toAuditVariables(new URLSearchParams(text)), [text]);
  const answer = useAnswer({ query: OperatorAuditDocument, variables });
  /** Cursors are valid for one filter only. */
  const set = (name: FilterName | "after", value: string | null) =>
    setQuery((before) => {
      const next = new URLSearchParams(before);
      next.delete("after");
      if (value) next.set(name, value);
      else next.delete(name);
      return next;
    });
  return (
    <OperatorPage
      title="Audit log"
      description="Acts of operators on accounts, keys and credits. Entries are never changed or deleted."
      above={[{ label: "Operator", to: OPERATOR }]}
      actions={<DownloadButton path={toCsvPath(variables.filter ?? {})}>Download CSV</DownloadButton>}
    >
      <Card>
        <Stack gap="sm">
          <Filters query={query} set={set} />
          <QueryView answer={answer} loading={<Loading rows={8} height={34} />}>
            {({ auditLog }) => {
              const { nodes = [], pageInfo } = auditLog ?? {};
              if (nodes.length === 0) {
                return FILTERS.some((name) => query.has(name)) ? (
                  <Empty
                    title="No entries match your filters"
                    action={
                      <Button variant="default" onClick={() => setQuery({})}>
                        Clear filters
                      </Button>
                    }
                  />
                ) : (
                  <Empty title="No entries yet">Acts of operators appear here.</Empty>
                );
              }
              return (
                <>
                  <AuditTable entries={nodes} entryAddress={(entryId) => `${AUDIT}/${encodeURIComponent(entryId)}${search}`} />
                  <Pager after={query.get("after")} pageInfo={pageInfo} onMove={(after) => set("after", after)} next="Older entries" />
                </>
              );
            }}
          </QueryView>
        </Stack>
      </Card>
      {id !== null && <AuditEntry id={id} onClose={() => void navigate(AUDIT + search, { preventScrollReset: true })} />}
    </OperatorPage>
  );
}

function Filters({ query, set }: { readonly query: URLSearchParams; readonly set: (name: FilterName, value: string | null) => void }) {
  const action = query.get("action");
  return (
    <Group gap="sm" align="flex-end" component="search">
      <AccountSelect
        label="Operator"
        value={query.get("actor") || null}
        filter={{ isOperator: true }}
        onChange={(id) => set("actor", id)}
      />
      <AccountSelect label="Account" value={query.get("account") || null} onChange={(id) => set("account", id)} />
      <Select
        label="Action"
        placeholder="Any"
        data={[...ACT_NAMES].map(([value, label]) => ({ value, label }))}
        value={action !== null && ACT_NAMES.has(action) ? action : null}
        onChange={(value) => set("action", value)}
        searchable
        clearable
        clearButtonProps={{ "aria-label": "Clear action" }}
        style={{ flex: "1 1 8rem" }}
      />
      {(["from", "to"] as const).map((name) => (
        <TextInput
          key={name}
          type="date"
          label={name === "from" ? "From (UTC)" : "To (UTC)"}
          value={query.get(name) ?? ""}
          onChange={({ target }) => set(name, target.value)}
          style={{ flex: "1 1 8rem" }}
        />
      ))}
    </Group>
  );
}

function AuditEntry({ id, onClose }: { readonly id: string; readonly onClose: () => void }) {
  const answer = useAnswer({ query: OperatorAuditEntryDocument, variables: { id } });
  return (
    <EntryDrawer title="Audit log entry" onClose={onClose}>
      <QueryView answer={answer} loading={<Loading rows={6} height={28} />}>
        {({ node }) =>
          node?.__typename === "AuditEntry" ? <Entry entry={node} /> : <Empty title="Entry not found">Check the address.</Empty>
        }
      </QueryView>
    </EntryDrawer>
  );
}

const EXACT = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "long", timeZone: "UTC" });

function Entry({ entry }: { readonly entry: AuditRowFragment }) {
  const { act, createdAt, actorApiKeyId, accountId, objectId, before, after, reason, address, requestId } = entry;
  return (
    <Stack>
      <Text fw={600}>{ACTS[act]}</Text>
      {reason !== null && (
        <Alert color="gray" variant="light" title="Reason">
          <bdi className="any-wrap">{reason}</bdi>
        </Alert>
      )}
      <Changes title="Before" facts={before} />
      <Changes title="After" facts={after} />
      <Card title="Details">
        <Facts>
          <Fact label="Time">
            {EXACT.format(new Date(createdAt))} (<When value={createdAt} />)
          </Fact>
          <Fact label="Operator">
            <AuditActor entry={entry} />
          </Fact>
          {actorApiKeyId !== null && (
            <Fact label="With key">
              <Copyable value={actorApiKeyId} label="key ID" />
            </Fact>
          )}
          <Fact label="Account">
            <AuditAccount entry={entry} />
          </Fact>
          {accountId !== null && (
            <Fact label="Account ID">
              <Copyable value={accountId} label="account ID" />
            </Fact>
          )}
          {objectId !== null && (
            <Fact label="Object">
              <Copyable value={objectId} label="object ID" />
            </Fact>
          )}
          <Fact label="IP address">{address ?? "–"}</Fact>
          {requestId !== null && (
            <Fact label="Request ID">
              <Copyable value={requestId} label="request ID" />
            </Fact>
          )}
        </Facts>
      </Card>
    </Stack>
  );
}

function Changes({ title, facts }: { readonly title: string; readonly facts: unknown }) {
  const rows = factsOf(facts);
  if (rows.length === 0) return null;
  return (
    <Card title={title}>
      <Facts>
        {rows.map(([name, value]) => (
          <Fact key={name} label={name}>
            <bdi>{value}</bdi>
          </Fact>
        ))}
      </Facts>
    </Card>
  );
}
