/** Outside apps that the account's agents may use: connected on a page of their broker. */
import { Badge, Button, Group, Modal, Stack, Table, Text, TextInput } from "@mantine/core";
import { useEffect, useState } from "react";
import { useMutation } from "urql";
import { useAnswer } from "../../client/answer.js";
import {
  AppsConnectDocument,
  AppsDisconnectDocument,
  AppsIntegrationsDocument,
  type AppsIntegrationsQuery,
  AppsToolkitsDocument,
  type IntegrationStatus,
} from "../../client/generated/graphql.js";
import { Confirm } from "../../ui/confirm.js";
import { Card } from "../../ui/page.js";
import { Empty, Failure, Loading, QueryView } from "../../ui/states.js";
import { WideTable } from "../../ui/wide.js";

type Integration = NonNullable<NonNullable<AppsIntegrationsQuery["me"]>["integrations"]>[number];

const STATUSES: Readonly<Record<IntegrationStatus, { readonly color: string; readonly label: string }>> = {
  ACTIVE: { color: "green", label: "connected" },
  INITIATED: { color: "orange", label: "waits for your approval" },
  FAILED: { color: "red", label: "refused" },
  EXPIRED: { color: "gray", label: "expired" },
  INACTIVE: { color: "gray", label: "switched off" },
};

export function Integrations() {
  const answer = useAnswer({ query: AppsIntegrationsDocument });
  const [isConnecting, setConnecting] = useState(false);
  // Approval happens in another window: whoever comes back sees what became of it.
  useEffect(() => {
    window.addEventListener("focus", answer.refetch);
    return () => window.removeEventListener("focus", answer.refetch);
  }, [answer.refetch]);
  const connect = <Button onClick={() => setConnecting(true)}>Connect an app</Button>;
  return (
    <Card
      title="Outside apps"
      actions={
        (answer.data?.me?.integrations?.length ?? 0) > 0 && (
          <Button size="compact-sm" variant="default" onClick={() => setConnecting(true)}>
            Connect an app
          </Button>
        )
      }
    >
      <Modal opened={isConnecting} onClose={() => setConnecting(false)} title="Connect an app" size="lg">
        <Toolkits onConnected={answer.refetch} onClose={() => setConnecting(false)} />
      </Modal>
      <QueryView answer={answer} loading={<Loading rows={2} height={36} />}>
        {({ me }) =>
          me?.integrations &&
          (me.integrations.length === 0 ? (
            <Empty title="No outside app is connected" action={connect}>
              Your agents can use apps of others, such as mail or a calendar, once you have connected them.
            </Empty>
          ) : (
            <IntegrationTable integrations={me.integrations} />
          ))
        }
      </QueryView>
    </Card>
  );
}

function IntegrationTable({ integrations }: { readonly integrations: readonly Integration[] }) {
  const [, disconnect] = useMutation(AppsDisconnectDocument);
  return (
    <WideTable label="Outside apps" columns={["App", "State", ""]}>
      {integrations.map(({ id, toolkit, name, alias, description, status }) => {
        const called = name ?? toolkit;
        return (
          <Table.Tr key={id}>
            <Table.Td miw={160}>
              <Text fw={600} size="sm" className="any-wrap">
                <bdi>{called}</bdi>
                {alias !== null && (
                  <span className="soft">
                    {" "}
                    (<bdi>{alias}</bdi>)
                  </span>
                )}
              </Text>
              <Text size="xs" c="dimmed" className="any-wrap">
                {description}
              </Text>
            </Table.Td>
            <Table.Td style={{ whiteSpace: "nowrap" }}>
              <Badge variant="light" color={STATUSES[status].color} size="sm">
                {STATUSES[status].label}
              </Badge>
            </Table.Td>
            <Table.Td ta="right">
              <Confirm
                title={`Disconnect ${called}?`}
                action="Disconnect"
                onConfirm={async () => (await disconnect({ input: { id } })).error}
                trigger={(open) => (
                  <Button size="compact-xs" color="red" variant="light" onClick={open} aria-label={`Disconnect ${called}`}>
                    Disconnect
                  </Button>
                )}
              >
                <Text>Your agents can use it no longer. You can connect it again.</Text>
              </Confirm>
            </Table.Td>
          </Table.Tr>
        );
      })}
    </WideTable>
  );
}

function Toolkits({ onConnected, onClose }: { readonly onConnected: () => void; readonly onClose: () => void }) {
  const answer = useAnswer({ query: AppsToolkitsDocument });
  const [{ fetching, error }, connect] = useMutation(AppsConnectDocument);
  const [search, setSearch] = useState("");
  const [page, setPage] = useState<{ readonly name: string; readonly url: string }>();
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const begin = async (slug: string, name: string) => {
    const { data } = await connect({ input: { toolkit: slug } });
    if (!data?.connectIntegration) return;
    setPage({ name, url: data.connectIntegration.url });
    onConnected();
  };
  if (page) {
    return (
      <Stack>
        <Text role="status">
          The connection waits for your approval. Open the page of <bdi>{page.name}</bdi>, sign in there and approve; then come back here.
        </Text>
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Close
          </Button>
          <Button component="a" href={page.url} target="_blank" rel="noopener" onClick={onClose}>
            Open the page
          </Button>
        </Group>
      </Stack>
    );
  }
  return (
    <Stack>
      <TextInput label="Search" value={search} onChange={({ target }) => setSearch(target.value)} type="search" data-autofocus />
      {error && <Failure error={error} />}
      <QueryView answer={answer}>
        {({ integrationToolkits }) => {
          const found = (integrationToolkits ?? []).filter(({ slug, name, description }) => {
            const text = `${slug} ${name} ${description}`.toLowerCase();
            return words.every((word) => text.includes(word));
          });
          return found.length === 0 ? (
            <Empty title="No app is called that" />
          ) : (
            <Stack gap="sm" mah={360} style={{ overflowY: "auto" }}>
              {found.slice(0, SHOWN_MAX).map(({ slug, name, description }) => (
                <Group key={slug} justify="space-between" wrap="nowrap" gap="sm">
                  <div style={{ minWidth: 0 }}>
                    <Text fw={600} size="sm" className="any-wrap">
                      <bdi>{name}</bdi>
                    </Text>
                    <Text size="xs" c="dimmed" className="any-wrap">
                      {description}
                    </Text>
                  </div>
                  <Button
                    size="compact-xs"
                    variant="default"
                    disabled={fetching}
                    onClick={() => void begin(slug, name)}
                    aria-label={`Connect ${name}`}
                  >
                    Connect
                  </Button>
                </Group>
              ))}
              {found.length > SHOWN_MAX && (
                <Text size="xs" c="dimmed">
                  {found.length - SHOWN_MAX} more: search for what you want.
                </Text>
              )}
            </Stack>
          );
        }}
      </QueryView>
    </Stack>
  );
}
const SHOWN_MAX = 50;
