/** List of all accounts, with search and filters. */
import { Alert, Anchor, Badge, Button, Group, Modal, Select, Stack, Table, Text, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { Link, useNavigate, useSearchParams } from "react-router";
import { useMutation, useQuery } from "urql";
import { useAnswer } from "../../client/answer.js";
import {
  type AccountFilter,
  OperatorAccountsDocument,
  type OperatorAccountsQuery,
  type OperatorAccountsQueryVariables,
  OperatorCreateAccountDocument,
  type OperatorCreateAccountMutation,
  OperatorRequestsWithIdDocument,
  type OperatorRequestsWithIdQuery,
  OperatorTiersDocument,
} from "../../client/generated/graphql.js";
import { formatCount } from "../../ui/amounts.js";
import { Copyable } from "../../ui/copy.js";
import { Credits } from "../../ui/credits.js";
import { DialogForm } from "../../ui/dialog-form.js";
import { Card } from "../../ui/page.js";
import { Pager } from "../../ui/pager.js";
import { useServerForm } from "../../ui/server-form.js";
import { Empty, Loading, QueryView } from "../../ui/states.js";
import { When, WhenCell } from "../../ui/when.js";
import { WideTable } from "../../ui/wide.js";
import { ACCOUNTS, accountAddress, LOGS, OPERATOR, OperatorPage } from "./parts.js";

const KINDS: ReadonlyMap<string, { readonly label: string; readonly filter: AccountFilter }> = new Map([
  ["operators", { label: "Operators", filter: { isOperator: true } }],
  ["suspended", { label: "Suspended", filter: { isSuspended: true } }],
  ["publishers", { label: "Publishers", filter: { isPublisher: true } }],
]);

/** Reads search and filters from the address. */
export function toAccountsVariables(parameters: URLSearchParams): OperatorAccountsQueryVariables {
  const [search, after, kind, tier] = ["q", "after", "kind", "tier"].map((name) => parameters.get(name));
  const filter = { ...KINDS.get(kind ?? "")?.filter, ...(tier && { tiers: [tier] }) };
  return { ...(search && { search }), ...(after && { after }), ...(Object.keys(filter).length > 0 && { filter }) };
}

type FoundRequest = NonNullable<OperatorRequestsWithIdQuery["requestLog"]>["nodes"][number];

export function Accounts() {
  const [parameters, setParameters] = useSearchParams();
  const variables = toAccountsVariables(parameters);
  const answer = useAnswer({ query: OperatorAccountsDocument, variables });
  const search = variables.search ?? "";
  const [found] = useQuery({ query: OperatorRequestsWithIdDocument, variables: { id: search }, pause: !isId(search) });
  const requests = isId(search) ? (found.data?.requestLog?.nodes ?? []) : [];
  const isCreating = parameters.has("new");
  const set = (changes: Readonly<Record<string, string | null>>, replace = false) =>
    setParameters(
      (before) => {
        const after = new URLSearchParams(before);
        for (const [name, value] of Object.entries(changes)) {
          if (value === null) after.delete(name);
          else after.set(name, value);
        }
        return after;
      },
      { replace },
    );
  return (
    <OperatorPage
      title="Accounts"
      above={[{ label: "Operator", to: OPERATOR }]}
      actions={<Button onClick={() => set({ new: "" })}>Create account</Button>}
    >
      <NewAccount isOpen={isCreating} onClose={() => set({ new: null }, true)} />
      <Card>
        <Stack gap="sm">
          <Search text={search} onSearch={(text) => set({ q: text === "" ? null : text, after: null })} />
          <Filters
            kind={parameters.get("kind") ?? ""}
            tier={parameters.get("tier") ?? ""}
            onChange={(changes) => set({ ...changes, after: null })}
          />
          <QueryView answer={answer} loading={<Loading rows={8} height={34} />}>
            {({ accounts }) =>
              accounts && (
                <AccountTable
                  accounts={accounts}
                  keyQuery={requests.length === 0 ? toKeyQuery(search) : ""}
                  after={variables.after ?? null}
                  onMove={(after) => set({ after })}
                />
              )
            }
          </QueryView>
          <RequestsWithId id={search} requests={requests} />
        </Stack>
      </Card>
    </OperatorPage>
  );
}

function Search({ text, onSearch }: { readonly text: string; readonly onSearch: (text: string) => void }) {
  const [typed, setTyped] = useState<string>();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onSearch(withoutSecret((typed ?? text).trim()));
    setTyped(undefined);
  };
  return (
    <search>
      <form onSubmit={submit}>
        <Group align="flex-end" gap="xs" wrap="nowrap">
          <TextInput
            label="Search"
            placeholder="E-mail, handle, name, key, or ID of an account, key or request"
            value={typed ?? text}
            onChange={({ target }) => setTyped(target.value)}
            maxLength={253}
            type="search"
            style={{ flex: 1 }}
          />
          <Button type="submit" variant="default">
            Search
          </Button>
        </Group>
      </form>
    </search>
  );
}

function Filters({
  kind,
  tier,
  onChange,
}: {
  readonly kind: string;
  readonly tier: string;
  readonly onChange: (changes: Readonly<Record<string, string | null>>) => void;
}) {
  const [{ data }] = useQuery({ query: OperatorTiersDocument });
  const tiers = data?.gateway?.tiers ?? [];
  return (
    <Group gap="xs">
      <Select
        label="Show"
        data={[{ value: "", label: "All accounts" }, ...[...KINDS].map(([value, { label }]) => ({ value, label }))]}
        value={KINDS.has(kind) ? kind : ""}
        onChange={(chosen) => onChange({ kind: chosen || null })}
        allowDeselect={false}
        style={{ flex: "1 1 8rem" }}
        maw="14rem"
      />
      <Select
        label="Tier"
        data={[{ value: "", label: "Any" }, ...new Set([...tiers, ...(tier === "" ? [] : [tier])])]}
        value={tier}
        onChange={(chosen) => onChange({ tier: chosen || null })}
        allowDeselect={false}
        style={{ flex: "1 1 8rem" }}
        maw="14rem"
      />
    </Group>
  );
}

/** Characters of a key that the gateway shows. */
const KEY_START_CHARS = 10;
const KEY_PATTERN = /^[sp]k_[A-Za-z0-9]/;
const UUID_PATTERN = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** A pasted key must not stay in the address, which the browser keeps. Its first characters find it. */
function withoutSecret(text: string): string {
  return KEY_PATTERN.test(text) ? text.slice(0, KEY_START_CHARS) : text;
}

/** Whether the text may be a request ID, or the beginning of one. */
function isId(text: string): boolean {
  return /^[A-Za-z0-9._-]{8,128}$/.test(text) && !KEY_PATTERN.test(text);
}

/** The page of the account lists the key that was searched for. */
function toKeyQuery(search: string): string {
  return KEY_PATTERN.test(search) || UUID_PATTERN.test(search) ? `?${new URLSearchParams({ key: search })}` : "";
}

/** Requests with the ID that was searched for: the person is in the list above, and the cause is one click away. */
function RequestsWithId({ id, requests }: { readonly id: string; readonly requests: readonly FoundRequest[] }) {
  if (requests.length === 0) return null;
  return (
    <Stack gap={4}>
      <Text size="sm" fw={600}>
        Requests with this ID
      </Text>
      {requests.map(({ id: entryId, timestamp, status, code }) => (
        <Text size="sm" key={entryId}>
          <Anchor component={Link} inherit to={`${LOGS}/${encodeURIComponent(entryId)}?q=${encodeURIComponent(id)}`}>
            {status} {code}
          </Anchor>{" "}
          <When value={timestamp} />
        </Text>
      ))}
    </Stack>
  );
}

function AccountTable({
  accounts: { nodes, pageInfo, totalCount },
  keyQuery,
  after,
  onMove,
}: {
  readonly accounts: NonNullable<OperatorAccountsQuery["accounts"]>;
  /** Query of the accounts' pages. */
  readonly keyQuery: string;
  readonly after: string | null;
  readonly onMove: (after: string | null) => void;
}) {
  if (nodes.length === 0) {
    return <Empty title="No accounts found">Search for a shorter part of the name or for the full ID, or clear the filters.</Empty>;
  }
  return (
    <>
      <Text size="sm" c="dimmed" role="status">
        {formatCount(totalCount, "account", "accounts")}
      </Text>
      <WideTable
        label="Accounts"
        columns={["Account", { wide: "E-mail" }, { wide: "Tier" }, { amount: "Credits" }, { wide: "Created" }]}
        highlightOnHover
      >
        {nodes.map(({ id, handle, name, email, tier, isOperator, isPublisher, suspendedAt, balance, createdAt, restId }) => (
          <Table.Tr key={id}>
            <Table.Td>
              <Group gap={6}>
                <Anchor
                  component={Link}
                  to={accountAddress(id) + (keyQuery.endsWith(restId) ? "" : keyQuery)}
                  fw={600}
                  className="any-wrap"
                >
                  <bdi>{handle}</bdi>
                </Anchor>
                {suspendedAt !== null && (
                  <Badge size="xs" variant="light" color="red">
                    Suspended
                  </Badge>
                )}
                {isOperator ? (
                  <Badge size="xs" variant="light">
                    Operator
                  </Badge>
                ) : (
                  isPublisher && (
                    <Badge size="xs" variant="light" color="gray">
                      Publisher
                    </Badge>
                  )
                )}
              </Group>
              {name !== null && (
                <Text size="xs" c="dimmed" className="any-wrap">
                  <bdi>{name}</bdi>
                </Text>
              )}
              {email !== null && (
                <Text size="xs" c="dimmed" className="any-wrap" hiddenFrom="sm">
                  {email}
                </Text>
              )}
            </Table.Td>
            <Table.Td className="any-wrap" miw={190} visibleFrom="sm">
              {email ?? "–"}
            </Table.Td>
            <Table.Td visibleFrom="sm">{tier ?? "–"}</Table.Td>
            <Table.Td ta="right">
              <Credits value={balance?.available} />
            </Table.Td>
            <WhenCell value={createdAt} visibleFrom="sm" />
          </Table.Tr>
        ))}
      </WideTable>
      <Pager after={after} pageInfo={pageInfo} onMove={onMove} next="Older accounts" />
    </>
  );
}

type Created = NonNullable<OperatorCreateAccountMutation["createAccount"]>;

function NewAccount({ isOpen, onClose }: { readonly isOpen: boolean; readonly onClose: () => void }) {
  const [created, setCreated] = useState<Created | null>(null);
  const navigate = useNavigate();
  const close = () => {
    setCreated(null);
    onClose();
  };
  return (
    <Modal opened={isOpen} onClose={close} title={created ? "Account created" : "Create account"} closeOnClickOutside={false}>
      {created ? (
        <Stack>
          <Alert color="yellow" variant="light" title="Copy this password now. You won’t be able to see it again." role="status">
            The owner signs in with this password and the address {created.account.email}, and should then change the password.
          </Alert>
          <div className="card">
            <Copyable value={created.password} label="password" />
          </div>
          <Group justify="flex-end">
            <Button onClick={() => void navigate(`${ACCOUNTS}/${encodeURIComponent(created.account.id)}`)}>Open account</Button>
          </Group>
        </Stack>
      ) : (
        <NewAccountForm onCreated={setCreated} onClose={close} />
      )}
    </Modal>
  );
}

function NewAccountForm({ onCreated, onClose }: { readonly onCreated: (created: Created) => void; readonly onClose: () => void }) {
  const [, create] = useMutation(OperatorCreateAccountDocument);
  const form = useServerForm(["email", "name"]);
  const [email, setEmail] = useState("");
  const [name, setName] = useState("");
  const submit = async () => {
    const answer = await create({ input: { email, ...(name !== "" && { name }) } });
    if (form.accept(answer) && answer.data?.createAccount) onCreated(answer.data.createAccount);
  };
  return (
    <DialogForm form={form} action="Create account" onSubmit={submit} onCancel={onClose}>
      <TextInput
        label="E-mail address"
        description="Used to sign in. It must be unique."
        {...form.text("email", email, setEmail)}
        type="email"
        autoComplete="off"
        required
        data-autofocus
      />
      <TextInput label="Name" {...form.text("name", name, setName)} autoComplete="off" />
    </DialogForm>
  );
}
