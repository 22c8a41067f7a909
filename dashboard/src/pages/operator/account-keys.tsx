/** Keys of an account, without their values. An operator can revoke each. */
import { Badge, Button, Group, Select, Stack, Table, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { useMutation } from "urql";
import { useAnswer } from "../../client/answer.js";
import {
  type ApiKeyOrder,
  OperatorKeysDocument,
  type OperatorKeysQuery,
  OperatorRevokeKeyDocument,
} from "../../client/generated/graphql.js";
import { formatCount } from "../../ui/amounts.js";
import { Confirm } from "../../ui/confirm.js";
import { Copyable } from "../../ui/copy.js";
import { Credits } from "../../ui/credits.js";
import { FilterInput } from "../../ui/filter-input.js";
import { Card } from "../../ui/page.js";
import { Pager } from "../../ui/pager.js";
import { Empty, Loading, QueryView } from "../../ui/states.js";
import { When, WhenCell } from "../../ui/when.js";
import { WideTable } from "../../ui/wide.js";
import { REASON_CHARS_MAX } from "./parts.js";

type Key = NonNullable<NonNullable<OperatorKeysQuery["account"]>["apiKeys"]>["nodes"][number];

const ORDER_DEFAULT = "used";
const ORDERS: ReadonlyMap<string, { readonly label: string; readonly order: ApiKeyOrder }> = new Map([
  [ORDER_DEFAULT, { label: "Last used", order: { field: "LAST_USED_AT", direction: "DESC" } }],
  ["spent", { label: "Most spent", order: { field: "SPENT", direction: "DESC" } }],
  ["new", { label: "Newest", order: { field: "CREATED_AT", direction: "DESC" } }],
  ["name", { label: "Name", order: { field: "NAME", direction: "ASC" } }],
]);

export interface AccountKeysProps {
  readonly accountId: string;
  /** Text that the operator searched for, such as a key ID. */
  readonly search: string;
  /** Called when a key was revoked. */
  readonly onChange: () => void;
}

export function AccountKeys({ accountId, search: initial, onChange }: AccountKeysProps) {
  const [search, setSearch] = useState(initial);
  const [order, setOrder] = useState(ORDER_DEFAULT);
  const [after, setAfter] = useState<string | null>(null);
  const orderBy: ApiKeyOrder = ORDERS.get(order)?.order ?? { field: "LAST_USED_AT", direction: "DESC" };
  const filter = search.trim() === "" ? {} : { filter: { search: search.trim() } };
  const answer = useAnswer({ query: OperatorKeysDocument, variables: { id: accountId, orderBy, ...filter, ...(after && { after }) } });
  return (
    <Card title="Keys">
      <Stack gap="sm">
        <Group gap="sm" align="flex-end" component="search">
          <FilterInput
            label="Search keys"
            placeholder="Name, first characters or ID"
            type="search"
            value={search}
            onChange={(text) => {
              setSearch(text);
              setAfter(null);
            }}
            maxLength={120}
            style={{ flex: "1 1 14rem" }}
            maw="22rem"
          />
          <Select
            label="Sort by"
            data={[...ORDERS].map(([value, { label }]) => ({ value, label }))}
            value={order}
            onChange={(value) => {
              setOrder(value ?? ORDER_DEFAULT);
              setAfter(null);
            }}
            allowDeselect={false}
            w={150}
          />
        </Group>
        <QueryView answer={answer} loading={<Loading rows={3} height={34} />}>
          {({ account }) => {
            const { nodes = [], pageInfo, totalCount = 0 } = account?.apiKeys ?? {};
            if (nodes.length === 0)
              return (
                <Empty
                  title={search === "" ? "No keys" : "No keys match your search"}
                  action={
                    search !== "" && (
                      <Button variant="default" onClick={() => setSearch("")}>
                        Show all keys
                      </Button>
                    )
                  }
                >
                  {search === "" ? "The account has no active keys." : "Revoked keys are not listed."}
                </Empty>
              );
            const changed = () => {
              answer.refetch();
              onChange();
            };
            return (
              <>
                <WideTable
                  label="Keys of the account"
                  columns={[
                    "Name",
                    { wide: "Key" },
                    { amount: "Spent" },
                    { wide: "Last used" },
                    { wide: "Created" },
                    { wide: "Expires" },
                    "",
                  ]}
                >
                  {nodes.map((key) => (
                    <KeyRow key={key.id} apiKey={key} onRevoked={changed} />
                  ))}
                </WideTable>
                <Group justify="space-between">
                  <Text size="sm" c="dimmed">
                    {formatCount(totalCount, "active key", "active keys")}
                  </Text>
                  <Pager after={after} pageInfo={pageInfo} onMove={setAfter} first="First page" next="Next page" />
                </Group>
              </>
            );
          }}
        </QueryView>
      </Stack>
    </Card>
  );
}

function KeyRow({ apiKey, onRevoked }: { readonly apiKey: Key; readonly onRevoked: () => void }) {
  const { restId, name, type, start, origin, app, spent, isValid, lastUsedAt, createdAt, expiresAt } = apiKey;
  return (
    <Table.Tr>
      <Table.Td>
        <Group gap={6}>
          <Text size="sm" fw={600} className="any-wrap">
            <bdi>{name}</bdi>
          </Text>
          {type === "PUBLISHABLE" && (
            <Badge size="xs" variant="light" color="gray">
              Publishable
            </Badge>
          )}
          {!isValid && (
            <Badge size="xs" variant="light" color="red">
              Inactive
            </Badge>
          )}
        </Group>
        <Text size="xs" c="dimmed" hiddenFrom="sm">
          <span className="mono">{start}…</span>, used <When value={lastUsedAt} fallback="never" />
        </Text>
        {origin !== "CREATED" && (
          <Text size="xs" c="dimmed">
            granted to <bdi>{app?.name ?? "an app"}</bdi>
          </Text>
        )}
      </Table.Td>
      <Table.Td visibleFrom="sm">
        <Copyable value={restId} shown={`${start}…`} label="key ID" />
      </Table.Td>
      <Table.Td ta="right">
        <Credits value={spent} />
      </Table.Td>
      <WhenCell value={lastUsedAt} visibleFrom="sm" />
      <WhenCell value={createdAt} visibleFrom="sm" />
      <WhenCell value={expiresAt} visibleFrom="sm" />
      <Table.Td>
        <Revoke apiKey={apiKey} onRevoked={onRevoked} />
      </Table.Td>
    </Table.Tr>
  );
}

function Revoke({ apiKey: { id, name, lastUsedAt }, onRevoked }: { readonly apiKey: Key; readonly onRevoked: () => void }) {
  const [, revoke] = useMutation(OperatorRevokeKeyDocument);
  const [reason, setReason] = useState("");
  return (
    <Confirm
      title={`Revoke ${name}?`}
      action="Revoke key"
      onConfirm={async () => {
        const { error } = await revoke({ input: { apiKeyId: id, ...(reason.trim() !== "" && { reason: reason.trim() }) } });
        if (!error) onRevoked();
        return error;
      }}
      trigger={(open) => (
        <Button size="compact-sm" color="red" variant="light" onClick={open} aria-label={`Revoke ${name}`}>
          Revoke
        </Button>
      )}
    >
      <Stack>
        <Text>
          Programs that use this key stop working within a second. Keys created with it are revoked as well. This cannot be undone.
        </Text>
        <Text size="sm" c="dimmed">
          {lastUsedAt === null ? (
            "This key has never been used."
          ) : (
            <>
              Last used <When value={lastUsedAt} />.
            </>
          )}
        </Text>
        <TextInput
          label="Reason"
          description="Optional. Kept in the audit log."
          value={reason}
          maxLength={REASON_CHARS_MAX}
          onChange={(event) => setReason(event.currentTarget.value)}
        />
      </Stack>
    </Confirm>
  );
}
