import { Alert, Anchor, Badge, Button, Group, Progress, Select, SimpleGrid, Stack, Table, Text } from "@mantine/core";
import { useMemo, useState } from "react";
import { Link, useParams, useSearchParams } from "react-router";
import { useMutation } from "urql";
import { useAnswer, useRefetchOnChange } from "../../client/answer.js";
import {
  type ApiKeyOrder,
  type KeyRowFragment,
  KeysListDocument,
  type KeysListQueryVariables,
  KeysOneDocument,
  type KeysOneQuery,
  KeysRevokeDocument,
} from "../../client/generated/graphql.js";
import { prefetch } from "../../client/graphql.js";
import { noteRevokedHere, useLive } from "../../shell/live.js";
import { addressOf } from "../../shell/pages.js";
import { formatCount } from "../../ui/amounts.js";
import { Confirm } from "../../ui/confirm.js";
import { Copyable } from "../../ui/copy.js";
import { Credits, sumOfCredits, toNanocredits } from "../../ui/credits.js";
import { daysAgo } from "../../ui/days.js";
import { DetailView } from "../../ui/detail-view.js";
import { Fact, Facts } from "../../ui/facts.js";
import { FilterInput } from "../../ui/filter-input.js";
import { Card, Page } from "../../ui/page.js";
import { Pager } from "../../ui/pager.js";
import { Empty, Loading, QueryView } from "../../ui/states.js";
import { When, WhenCell } from "../../ui/when.js";
import { WideTable } from "../../ui/wide.js";
import { EditKey } from "./edit-key.js";
import { NewKey } from "./key-form.js";
import { KeyLimits } from "./key-limits.js";

const DAYS_SHOWN = 30;

const ORDER_DEFAULT = "new";
const ORDERS: ReadonlyMap<string, { readonly label: string; readonly order: ApiKeyOrder }> = new Map([
  [ORDER_DEFAULT, { label: "Newest first", order: { field: "CREATED_AT", direction: "DESC" } }],
  ["old", { label: "Oldest first", order: { field: "CREATED_AT", direction: "ASC" } }],
  ["name", { label: "Name", order: { field: "NAME", direction: "ASC" } }],
  ["spent", { label: "Most spent", order: { field: "SPENT", direction: "DESC" } }],
  ["used", { label: "Last used", order: { field: "LAST_USED_AT", direction: "DESC" } }],
]);

/** Search and order from the address. */
function readKeys(query: URLSearchParams): KeysListQueryVariables {
  const search = query.get("q")?.trim() || null;
  const after = query.get("after") || null;
  const { order } = ORDERS.get(query.get("order") ?? ORDER_DEFAULT) ?? { order: { field: "CREATED_AT", direction: "DESC" } as const };
  return { orderBy: order, ...(search !== null && { filter: { search } }), ...(after !== null && { after }) };
}

const since = () => daysAgo(DAYS_SHOWN).toISOString();

export function start({ params: { id }, url }: { readonly params: Readonly<Record<string, string | undefined>>; readonly url: URL }): void {
  if (id === undefined) prefetch(KeysListDocument, readKeys(url.searchParams));
  else prefetch(KeysOneDocument, { id, from: since() });
}

export function Component() {
  const { id } = useParams();
  return id === undefined ? <Keys /> : <OneKey id={id} />;
}

function Keys() {
  const [query, setQuery] = useSearchParams();
  const variables = useMemo(() => readKeys(query), [query]);
  const answer = useAnswer({ query: KeysListDocument, variables });
  const isCreating = query.has("new");
  const isFiltered = query.has("q");
  /** Cursors are valid for one search and order only. */
  const set = (name: string, value: string | null, isTyped = false) =>
    setQuery(
      (before) => {
        const next = new URLSearchParams(before);
        for (const each of ["after", "new"]) next.delete(each);
        if (value) next.set(name, value);
        else next.delete(name);
        return next;
      },
      { replace: isTyped || name === "new", preventScrollReset: true },
    );
  const create = () => setQuery({ new: "" });
  const { keysChangedAt } = useLive();
  useRefetchOnChange(keysChangedAt, answer.refetch);
  return (
    <Page
      title="Keys"
      description="Programs use keys to spend your credits. Create one key per program, with only the access it needs."
      actions={<Button onClick={create}>Create key</Button>}
    >
      <NewKey isOpen={isCreating} onClose={() => set("new", null)} />
      <Card>
        <Group gap="sm" align="flex-end" component="search" mb="sm">
          <FilterInput
            label="Search"
            placeholder="Name, or first characters"
            type="search"
            value={query.get("q") ?? ""}
            onChange={(q) => set("q", q, true)}
            maxLength={120}
            w={220}
          />
          <Select
            label="Sort by"
            data={[...ORDERS].map(([value, { label }]) => ({ value, label }))}
            value={ORDERS.has(query.get("order") ?? "") ? query.get("order") : ORDER_DEFAULT}
            onChange={(order) => set("order", order === ORDER_DEFAULT ? null : order)}
            allowDeselect={false}
            w={170}
          />
        </Group>
        <QueryView answer={answer} loading={<Loading rows={5} height={36} />}>
          {({ me }) => {
            const { nodes = [], pageInfo, totalCount = 0 } = me?.apiKeys ?? {};
            return nodes.length > 0 ? (
              <Stack gap="sm">
                <KeyTable keys={nodes} />
                <Group justify="space-between">
                  <Text size="sm" c="dimmed" role="status">
                    {formatCount(totalCount, "key", "keys")}
                  </Text>
                  <Pager
                    after={query.get("after")}
                    pageInfo={pageInfo}
                    onMove={(after) => set("after", after)}
                    first="First page"
                    next="Next page"
                  />
                </Group>
              </Stack>
            ) : isFiltered ? (
              <Empty
                title="No keys match your search"
                action={
                  <Button variant="default" onClick={() => set("q", null)}>
                    Clear search
                  </Button>
                }
              />
            ) : (
              <Empty title="No keys yet" action={<Button onClick={create}>Create key</Button>}>
                Create a key to call the API from your programs.
              </Empty>
            );
          }}
        </QueryView>
      </Card>
    </Page>
  );
}

function KeyTable({ keys }: { readonly keys: readonly KeyRowFragment[] }) {
  return (
    <WideTable
      label="Your keys"
      columns={[
        "Name",
        { wide: "Key" },
        { amount: "Spent" },
        { wide: "Budget" },
        { wide: "Last used" },
        { wide: "Created" },
        { wide: "Expires" },
      ]}
      highlightOnHover
    >
      {keys.map((key) => (
        <Table.Tr key={key.id}>
          <Table.Td>
            <Anchor component={Link} to={encodeURIComponent(key.id)} className="any-wrap" fw={600}>
              <bdi>{key.name}</bdi>
            </Anchor>
            <Text size="xs" c="dimmed" className="mono" hiddenFrom="sm">
              {key.start}…
            </Text>
            <Kind apiKey={key} />
          </Table.Td>
          <Table.Td className="mono" visibleFrom="sm">
            {key.start}…
          </Table.Td>
          <Table.Td ta="right">
            <Credits value={key.spent} />
            {key.creditBudget !== null && (
              <Text size="xs" c="dimmed" hiddenFrom="sm">
                <Credits value={key.creditBudget} /> left
              </Text>
            )}
          </Table.Td>
          <Table.Td miw={120} visibleFrom="sm">
            <Budget apiKey={key} />
          </Table.Td>
          <WhenCell value={key.lastUsedAt} visibleFrom="sm" />
          <WhenCell value={key.createdAt} visibleFrom="sm" />
          <WhenCell value={key.expiresAt} visibleFrom="sm" />
        </Table.Tr>
      ))}
    </WideTable>
  );
}

function Kind({ apiKey: { type, origin, parentId, isValid, isManagement, app } }: { readonly apiKey: KeyRowFragment }) {
  const words = [
    ...(type === "PUBLISHABLE" ? ["publishable"] : []),
    ...(isManagement ? ["management"] : []),
    ...(origin === "CREATED" ? [] : [`granted to ${app?.name ?? "an app"}`]),
    ...(parentId === null ? [] : ["created by another key"]),
  ];
  return (
    <Group gap={6}>
      {words.length > 0 && (
        <Text size="xs" c="dimmed">
          {words.join(", ")}
        </Text>
      )}
      {!isValid && (
        <Badge size="xs" color="red" variant="light">
          Inactive
        </Badge>
      )}
    </Group>
  );
}

/** Remaining budget, as text and as a bar. */
function Budget({ apiKey: { creditBudget, spent, name } }: { readonly apiKey: KeyRowFragment }) {
  if (creditBudget === null)
    return (
      <Text c="dimmed" size="sm">
        No limit
      </Text>
    );
  const whole = toNanocredits(sumOfCredits([creditBudget, spent]));
  const percent = whole <= 0n ? 0 : Number((toNanocredits(creditBudget) * 100n) / whole);
  return (
    <Stack gap={4}>
      <Text size="sm">
        <Credits value={creditBudget} /> left
      </Text>
      <Progress value={percent} color={percent < 10 ? "orange" : "blue"} size="sm" aria-label={`${name}: ${percent}% of the budget left`} />
    </Stack>
  );
}

const ABOVE = [{ label: "Keys", to: addressOf("keys") }];

function OneKey({ id }: { readonly id: string }) {
  const answer = useAnswer({ query: KeysOneDocument, variables: useMemo(() => ({ id, from: since() }), [id]) });
  const { keysChangedAt } = useLive();
  useRefetchOnChange(keysChangedAt, answer.refetch);
  return (
    <DetailView
      answer={answer}
      name="key"
      above={ABOVE}
      why="It may have been revoked long ago, or it belongs to another account."
      all="All keys"
    >
      {({ node }) => node?.__typename === "ApiKey" && <KeyDetails apiKey={node} />}
    </DetailView>
  );
}

type Shown = Extract<NonNullable<KeysOneQuery["node"]>, { readonly __typename: "ApiKey" }>;

function KeyDetails({ apiKey }: { readonly apiKey: Shown }) {
  const [, revoke] = useMutation(KeysRevokeDocument);
  const [isEditing, setEditing] = useState(false);
  const { id, name, start: beginning, allowedModels, permissions, createdAt, lastUsedAt, expiresAt, revokedAt, redirectUrls } = apiKey;
  const [sum] = apiKey.usageSummary ?? [];
  const isRevoked = revokedAt !== null;
  return (
    <Page
      title={<bdi>{name}</bdi>}
      tabTitle={name}
      above={ABOVE}
      actions={
        !isRevoked && (
          <>
            <Button variant="default" onClick={() => setEditing(true)}>
              Edit
            </Button>
            <Confirm
              title={`Revoke ${name}?`}
              action="Revoke key"
              onConfirm={async () => {
                noteRevokedHere(apiKey.restId);
                return (await revoke({ input: { id } })).error;
              }}
              trigger={(open) => (
                <Button color="red" variant="light" onClick={open}>
                  Revoke
                </Button>
              )}
            >
              <Text>
                Programs that use this key stop working within a second. Keys created with it are revoked as well. This cannot be undone.
              </Text>
              <Text mt="sm" c="dimmed" size="sm">
                {lastUsedAt === null ? (
                  "This key has never been used."
                ) : (
                  <>
                    Last used <When value={lastUsedAt} />, with {formatCount(sum?.requests ?? 0, "request", "requests")} in the last{" "}
                    {DAYS_SHOWN} days.
                  </>
                )}
              </Text>
            </Confirm>
          </>
        )
      }
    >
      {isEditing && <EditKey apiKey={apiKey} since={since()} onClose={() => setEditing(false)} />}
      {isRevoked && (
        <Alert color="red" variant="light" title="This key has been revoked">
          Revoked <When value={revokedAt} />. Requests with this key are rejected.
        </Alert>
      )}
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <Card title="Details">
          <Facts>
            <Fact label="Key">
              <span className="mono">{beginning}…</span>
            </Fact>
            <Fact label="ID">
              <Copyable value={apiKey.restId} label="ID" />
            </Fact>
            <Fact label="Budget">
              <Budget apiKey={apiKey} />
            </Fact>
            <Fact label="Models">{allowedModels === null ? "All" : allowedModels.length === 0 ? "None" : allowedModels.join(", ")}</Fact>
            <Fact label="Permissions">
              {apiKey.isManagement
                ? "Manages keys, cannot generate"
                : permissions.length === 0
                  ? "Generate only"
                  : permissions.join(", ").toLowerCase()}
            </Fact>
            {apiKey.externalId !== null && <Fact label="External ID">{apiKey.externalId}</Fact>}
            {redirectUrls.length > 0 && <Fact label="Redirect URLs">{redirectUrls.join(", ")}</Fact>}
            <Fact label="Created">
              <When value={createdAt} />
            </Fact>
            <Fact label="Last used">
              <When value={lastUsedAt} />
            </Fact>
            <Fact label="Expires">
              <When value={expiresAt} />
            </Fact>
          </Facts>
        </Card>
        <Card
          title={`Last ${DAYS_SHOWN} days`}
          actions={
            <Anchor component={Link} size="sm" to={`${addressOf("usage")}?key=${encodeURIComponent(id)}`}>
              View requests
            </Anchor>
          }
        >
          {sum === undefined || sum.requests === 0 ? (
            <Empty title="No requests" />
          ) : (
            <Stack gap="sm">
              <Text>
                <strong>{sum.requests}</strong> {sum.requests === 1 ? "request" : "requests"} for{" "}
                <strong>
                  <Credits value={sum.cost} unit />
                </strong>
              </Text>
              <Table>
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>Model</Table.Th>
                    <Table.Th ta="right">Requests</Table.Th>
                    <Table.Th ta="right">Credits</Table.Th>
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {apiKey.byModel?.map(({ modelId, requests, cost }) => (
                    <Table.Tr key={modelId}>
                      <Table.Td className="any-wrap">{modelId ?? "Removed model"}</Table.Td>
                      <Table.Td ta="right">{requests}</Table.Td>
                      <Table.Td ta="right">
                        <Credits value={cost} />
                      </Table.Td>
                    </Table.Tr>
                  ))}
                </Table.Tbody>
              </Table>
            </Stack>
          )}
        </Card>
      </SimpleGrid>
      <KeyLimits id={id} isEditable={!isRevoked} />
    </Page>
  );
}
