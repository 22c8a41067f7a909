/** Apps: those that act for this account, its own, and outside apps that its agents may use. */
import { Badge, Button, Group, Progress, Stack, Table, Text } from "@mantine/core";
import { useParams, useSearchParams } from "react-router";
import { useMutation } from "urql";
import { useAnswer } from "../../client/answer.js";
import {
  AppsIntegrationsDocument,
  type AppsIssuedKeyFragment,
  AppsKeysDocument,
  type AppsKeysQuery,
  AppsOneDocument,
  AppsRevokeDocument,
} from "../../client/generated/graphql.js";
import { prefetch } from "../../client/graphql.js";
import { Confirm } from "../../ui/confirm.js";
import { Credits, sumOfCredits, toNanocredits } from "../../ui/credits.js";
import { Card, Page } from "../../ui/page.js";
import { Empty, Loading, QueryView } from "../../ui/states.js";
import { When, WhenCell } from "../../ui/when.js";
import { WideTable } from "../../ui/wide.js";
import { NewApp } from "./app-form.js";
import { Integrations } from "./integrations.js";
import { OneApp } from "./one-app.js";
import { OwnApps } from "./own-apps.js";

export function start({ params: { id } }: { readonly params: Readonly<Record<string, string | undefined>> }): void {
  if (id !== undefined) {
    prefetch(AppsOneDocument, { id });
    return;
  }
  prefetch(AppsKeysDocument, {});
  prefetch(AppsIntegrationsDocument, {});
}

export function Component() {
  const { id } = useParams();
  return id === undefined ? <Apps /> : <OneApp key={id} id={id} />;
}

function Apps() {
  const [parameters, setParameters] = useSearchParams();
  const answer = useAnswer({ query: AppsKeysDocument });
  return (
    <Page
      title="Apps"
      description="Apps of others act for you with keys that you have granted them; your own apps ask others for theirs."
      actions={<Button onClick={() => setParameters({ new: "" })}>Register an app</Button>}
    >
      <NewApp isOpen={parameters.has("new")} onClose={() => setParameters({}, { replace: true })} />
      <QueryView answer={answer} loading={<Loading rows={4} height={72} />}>
        {({ me }) =>
          me && (
            <>
              <Issued keys={me.issued} />
              <OwnApps keys={me.own} />
            </>
          )
        }
      </QueryView>
      <Integrations />
    </Page>
  );
}

function Issued({ keys }: { readonly keys: NonNullable<AppsKeysQuery["me"]>["issued"] }) {
  if (keys === null) return null;
  return (
    <Card title="Apps that act for you">
      {keys.nodes.length === 0 ? (
        <Empty title="No app acts for you">An app that wants to spend your credits sends you to a page that says what it asks for.</Empty>
      ) : (
        <WideTable
          label="Apps that act for you"
          columns={["App", "What it may", "Spent", "Last used", "Until", ""]}
          below={
            keys.totalCount > keys.nodes.length && (
              <Text size="sm" c="dimmed">
                The newest {keys.nodes.length} of {keys.totalCount}.
              </Text>
            )
          }
        >
          {keys.nodes.map((key) => (
            <IssuedRow key={key.id} apiKey={key} />
          ))}
        </WideTable>
      )}
    </Card>
  );
}

function IssuedRow({ apiKey }: { readonly apiKey: AppsIssuedKeyFragment }) {
  const [, revoke] = useMutation(AppsRevokeDocument);
  const { id, name, app, origin, permissions, allowedModels, createdAt, lastUsedAt, expiresAt, isValid } = apiKey;
  const called = app?.name ?? name;
  return (
    <Table.Tr>
      <Table.Td miw={150}>
        <Group gap={6}>
          <Text fw={600} size="sm" className="any-wrap">
            <bdi>{called}</bdi>
          </Text>
          {app === null && (
            <Badge size="xs" variant="light" color="orange">
              unverified
            </Badge>
          )}
          {!isValid && (
            <Badge size="xs" variant="light" color="red">
              ended
            </Badge>
          )}
        </Group>
        <Text size="xs" c="dimmed" className="any-wrap">
          {app?.owner && (
            <>
              by <bdi>{app.owner.handle}</bdi>,{" "}
            </>
          )}
          granted {origin === "DEVICE_FLOW" ? "to a device " : ""}
          <When value={createdAt} />
        </Text>
      </Table.Td>
      <Table.Td miw={140}>
        <Text size="sm">{permissions.length === 0 ? "generate" : `generate, ${permissions.join(", ").toLowerCase()}`}</Text>
        <Text size="xs" c="dimmed" className="any-wrap">
          {allowedModels === null ? "every model" : allowedModels.length === 0 ? "no model" : allowedModels.join(", ")}
        </Text>
      </Table.Td>
      <Table.Td miw={140}>
        <Spent apiKey={apiKey} called={called} />
      </Table.Td>
      <WhenCell value={lastUsedAt} />
      <WhenCell value={expiresAt} />
      <Table.Td ta="right">
        <Confirm
          title={`Revoke the key of ${called}?`}
          action="Revoke the key"
          onConfirm={async () => (await revoke({ input: { id } })).error}
          trigger={(open) => (
            <Button size="compact-xs" color="red" variant="light" onClick={open} aria-label={`Revoke the key of ${called}`}>
              Revoke
            </Button>
          )}
        >
          <Text>The app stops spending your credits within a second. It can ask you again.</Text>
        </Confirm>
      </Table.Td>
    </Table.Tr>
  );
}

function Spent({ apiKey: { spent, creditBudget }, called }: { readonly apiKey: AppsIssuedKeyFragment; readonly called: string }) {
  const whole = creditBudget === null ? 0n : toNanocredits(sumOfCredits([creditBudget, spent]));
  const percent = whole === 0n ? 0 : Number((toNanocredits(spent) * 100n) / whole);
  return (
    <Stack gap={4}>
      <Text size="sm">
        <Credits value={spent} />
        {creditBudget !== null && (
          <>
            , <Credits value={creditBudget} /> left
          </>
        )}
      </Text>
      {creditBudget !== null && <Progress value={percent} size="sm" aria-label={`${percent}% of what ${called} was granted is spent`} />}
    </Stack>
  );
}
