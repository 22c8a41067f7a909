/** One of the account's own apps: usage of its users, details and authorization link. */
import { Alert, Button, SimpleGrid, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { useLocation } from "react-router";
import { useMutation } from "urql";
import { useAnswer } from "../../client/answer.js";
import { AppsOneDocument, type AppsOneQuery, AppsRevokeDocument } from "../../client/generated/graphql.js";
import { addressOf } from "../../shell/pages.js";
import { Confirm } from "../../ui/confirm.js";
import { Copyable } from "../../ui/copy.js";
import { Credits } from "../../ui/credits.js";
import { DAY_MS, daysAgo } from "../../ui/days.js";
import { DetailView } from "../../ui/detail-view.js";
import { Fact, Facts } from "../../ui/facts.js";
import { Card, Page } from "../../ui/page.js";
import { Empty } from "../../ui/states.js";
import { SumsChart } from "../../ui/sums-chart.js";
import { When } from "../../ui/when.js";
import { EditApp } from "./app-form.js";
import { LinkBuilder } from "./link-builder.js";
import { Margin } from "./margin.js";

const ABOVE = [{ label: "Apps", to: addressOf("apps") }];
const DAYS = 30;

type Shown = Extract<NonNullable<AppsOneQuery["node"]>, { readonly __typename: "ApiKey" }>;
type Usage = NonNullable<Shown["appUsage"]>;

export function OneApp({ id }: { readonly id: string }) {
  const answer = useAnswer({ query: AppsOneDocument, variables: { id } });
  return (
    <DetailView
      answer={answer}
      name="app"
      above={ABOVE}
      why="Its key may have been revoked long ago, or it belongs to another account."
      all="All apps"
    >
      {({ node }) => node?.__typename === "ApiKey" && node.type === "PUBLISHABLE" && <AppDetails app={node} refetch={answer.refetch} />}
    </DetailView>
  );
}

function AppDetails({ app, refetch }: { readonly app: Shown; readonly refetch: () => void }) {
  const [, revoke] = useMutation(AppsRevokeDocument);
  const [isEditing, setEditing] = useState(false);
  const { state } = useLocation();
  const appKey = typeof state === "object" && state !== null && "appKey" in state && typeof state.appKey === "string" ? state.appKey : "";
  const { id, name, start, redirectUrls, createdAt, revokedAt, appUsage } = app;
  return (
    <Page
      title={<bdi>{name}</bdi>}
      tabTitle={name}
      above={ABOVE}
      actions={
        revokedAt === null && (
          <>
            <Button variant="default" onClick={() => setEditing(true)}>
              Edit
            </Button>
            <Confirm
              title={`Revoke the key of ${name}?`}
              action="Revoke key"
              onConfirm={async () => (await revoke({ input: { id } })).error}
              trigger={(open) => (
                <Button color="red" variant="light" onClick={open}>
                  Revoke
                </Button>
              )}
            >
              <Text>
                The app can no longer ask users for access. Keys that users have granted keep working until they expire or are revoked.
              </Text>
            </Confirm>
          </>
        )
      }
    >
      {isEditing && <EditApp app={app} onClose={() => setEditing(false)} />}
      {revokedAt !== null && (
        <Alert color="red" variant="light" title="This app’s key has been revoked">
          Revoked <When value={revokedAt} />. The app can no longer ask users for access.
        </Alert>
      )}
      {appUsage && <UsersUsage usage={appUsage} />}
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <Card title="Details">
          <Facts>
            <Fact label="Name">
              <bdi>{name}</bdi>
            </Fact>
            <Fact label="Key">
              <span className="mono">{start}…</span>
            </Fact>
            <Fact label="ID">
              <Copyable value={app.restId} label="ID" />
            </Fact>
            <Fact label="Created">
              <When value={createdAt} />
            </Fact>
          </Facts>
        </Card>
        <Card title="Redirect URLs">
          {redirectUrls.length === 0 ? (
            <Stack gap="xs" align="flex-start">
              <Text size="sm">
                No redirect URLs yet. Anyone with the app key can ask for access in the app’s name and receive the response at any safe URL.
              </Text>
              {revokedAt === null && (
                <Button size="compact-sm" variant="default" onClick={() => setEditing(true)}>
                  Add redirect URLs
                </Button>
              )}
            </Stack>
          ) : (
            <Stack gap={6}>
              {redirectUrls.map((url) => (
                <Copyable key={url} value={url} label="URL" />
              ))}
            </Stack>
          )}
        </Card>
        <Margin app={app} onChanged={refetch} />
      </SimpleGrid>
      {revokedAt === null && <LinkBuilder app={app} appKey={appKey} />}
    </Page>
  );
}

function UsersUsage({ usage: { days, totalRequests, totalCost } }: { readonly usage: Usage }) {
  return (
    <SumsChart
      title={`Usage by its users, last ${DAYS} days`}
      sums={days.map(({ date, ...sum }) => ({ ...sum, from: `${date}T00:00:00Z` }))}
      times={{ first: daysAgo(DAYS - 1).getTime(), step: DAY_MS, count: DAYS }}
      empty={<Empty title="No usage yet">You will see totals only, never who the users are.</Empty>}
    >
      <Text>
        <strong>{totalRequests}</strong> {totalRequests === 1 ? "request" : "requests"} for{" "}
        <strong>
          <Credits value={totalCost} unit />
        </strong>
        , paid by the users.
      </Text>
    </SumsChart>
  );
}
