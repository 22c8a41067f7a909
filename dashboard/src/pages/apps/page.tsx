/** Apps with access to this account, its own apps, and integrations for its agents. */
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
      description="Apps that you have authorized to spend your credits, apps that you have registered, and integrations for your agents."
      actions={<Button onClick={() => setParameters({ new: "" })}>Register app</Button>}
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
    <Card title="Authorized apps">
      {keys.nodes.length === 0 ? (
        <Empty title="No authorized apps">An app that wants to spend your credits sends you to a page where you can approve it.</Empty>
      ) : (
        <WideTable
          label="Authorized apps"
          columns={["App", "Permissions", "Spent", "Last used", "Expires", ""]}
          below={
            keys.totalCount > keys.nodes.length && (
              <Text size="sm" c="dimmed">
                Showing the newest {keys.nodes.length} of {keys.totalCount}.
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
  const { id, name, app, origin, permissions, allowedModels, createdAt, lastUsedAt, expiresAt, isValid, marginPercent } = apiKey;
  const title = app?.name ?? name;
  return (
    <Table.Tr>
      <Table.Td miw={150}>
        <Group gap={6}>
          <Text fw={600} size="sm" className="any-wrap">
            <bdi>{title}</bdi>
          </Text>
          {app === null && (
            <Badge size="xs" variant="light" color="orange">
              Unverified
            </Badge>
          )}
          {!isValid && (
            <Badge size="xs" variant="light" color="red">
              Inactive
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
        {marginPercent > 0 && (
          <Text size="xs" c="dimmed">
            adds {marginPercent}% to prices
          </Text>
        )}
      </Table.Td>
      <Table.Td miw={140}>
        <Text size="sm">{permissions.length === 0 ? "generate" : `generate, ${permissions.join(", ").toLowerCase()}`}</Text>
        <Text size="xs" c="dimmed" className="any-wrap">
          {allowedModels === null ? "All models" : allowedModels.length === 0 ? "No models" : allowedModels.join(", ")}
        </Text>
      </Table.Td>
      <Table.Td miw={140}>
        <Spent apiKey={apiKey} title={title} />
      </Table.Td>
      <WhenCell value={lastUsedAt} />
      <WhenCell value={expiresAt} />
      <Table.Td ta="right">
        <Confirm
          title={`Revoke access of ${title}?`}
          action="Revoke access"
          onConfirm={async () => (await revoke({ input: { id } })).error}
          trigger={(open) => (
            <Button size="compact-xs" color="red" variant="light" onClick={open} aria-label={`Revoke access of ${title}`}>
              Revoke
            </Button>
          )}
        >
          <Text>The app can no longer spend your credits, within a second. It can ask you for access again.</Text>
        </Confirm>
      </Table.Td>
    </Table.Tr>
  );
}

function Spent({ apiKey: { spent, creditBudget }, title }: { readonly apiKey: AppsIssuedKeyFragment; readonly title: string }) {
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
      {creditBudget !== null && <Progress value={percent} size="sm" aria-label={`${title}: ${percent}% of the budget spent`} />}
    </Stack>
  );
}
