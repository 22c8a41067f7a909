/** Details of one model or agent: health, usage by others and scheduled changes, with actions to edit, test, deploy and delete it. */
import { Alert, Anchor, Button, Group, SimpleGrid, Stack, Text } from "@mantine/core";
import { type ReactNode, useEffect, useState } from "react";
import { Link, useNavigate, useSearchParams } from "react-router";
import { useMutation } from "urql";
import { useAnswer } from "../../client/answer.js";
import {
  MyModelsDeleteDocument,
  MyModelsOneDocument,
  MyModelsSyncDocument,
  type MyModelWholeFragment,
} from "../../client/generated/graphql.js";
import { addressOf } from "../../shell/pages.js";
import { formatCount } from "../../ui/amounts.js";
import { Confirm } from "../../ui/confirm.js";
import { Copyable } from "../../ui/copy.js";
import { Credits } from "../../ui/credits.js";
import { DetailView } from "../../ui/detail-view.js";
import { Fact, Facts } from "../../ui/facts.js";
import { MODALITIES } from "../../ui/modalities.js";
import { Card, Page } from "../../ui/page.js";
import { useServerForm } from "../../ui/server-form.js";
import { Empty } from "../../ui/states.js";
import { toast } from "../../ui/toast.js";
import { When } from "../../ui/when.js";
import { kindOf, PRICE_FIELDS, pricesOf } from "./draft.js";
import { Edit, isModel } from "./edit.js";
import { Health } from "./health.js";
import { KIND_LABELS, PRICE_LABELS, SERVERS } from "./labels.js";
import { useModelChanges } from "./live.js";
import { Probe } from "./probe.js";
import { LastRuns } from "./runs.js";
import { OUTDATED } from "./wizard.js";

const ABOVE = [{ label: "My models", to: addressOf("my-models") }];

export function OneModel({ id }: { readonly id: string }) {
  const answer = useAnswer({ query: MyModelsOneDocument, variables: { id } });
  useModelChanges(answer.refetch);
  return (
    <DetailView
      answer={answer}
      name="model"
      above={ABOVE}
      why="It was deleted, or it belongs to another account."
      all="All your models and agents"
    >
      {({ node, me }) => isModel(node) && <Details model={node} isPublisher={me?.isPublisher ?? false} />}
    </DetailView>
  );
}

function Details({ model, isPublisher }: { readonly model: MyModelWholeFragment; readonly isPublisher: boolean }) {
  const [search, setSearch] = useSearchParams();
  const kind = kindOf(model);
  const canBeTested = kind === "proxy" || kind === "endpoint";
  const close = () => setSearch({}, { replace: true });
  return (
    <Page
      title={<bdi>{model.title}</bdi>}
      tabTitle={model.title}
      above={ABOVE}
      description={model.description === null ? undefined : <bdi className="any-wrap">{model.description}</bdi>}
      actions={
        <>
          <Button component={Link} variant="default" to={`${addressOf("playground")}?model=${encodeURIComponent(model.modelId)}`}>
            Try it
          </Button>
          {model.__typename === "CodeAgent" && <Sync id={model.id} />}
          <Button variant="default" onClick={() => setSearch({ edit: "" })}>
            Edit
          </Button>
          <Delete model={model} />
        </>
      }
    >
      {search.has("edit") && <Edit model={model} isPublisher={isPublisher} onClose={close} />}
      {model.pending && <Pending model={model} pending={model.pending} />}
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <Card title="Health">
          <Stack gap="md">
            <Group gap="xl" align="flex-start">
              <Figure label="Status">
                <Health health={model.health} />
              </Figure>
              <Figure label="Success rate">
                <span data-requests={model.health.requests}>
                  {model.health.successRate === null ? "–" : `${Math.round(model.health.successRate * 100)}%`}
                </span>{" "}
                <span className="soft">of {formatCount(model.health.requests, "call", "calls")}</span>
              </Figure>
            </Group>
            {canBeTested && <TestRegistered id={model.id} />}
          </Stack>
        </Card>
        <Card title="Usage by others">
          {model.usage === null || model.usage.requests === 0 ? (
            <Empty title="No calls by others in the last 30 days">
              {model.visibility === "PRIVATE" ? "This model is private: only you can call it." : "Your own calls are not counted."}
            </Empty>
          ) : (
            <Group gap="xl">
              <Figure label="Credits, last 30 days">
                <span className="amount">
                  <Credits value={model.usage.cost} />
                </span>
              </Figure>
              <Figure label="Requests">
                <span className="amount">{model.usage.requests.toLocaleString("en")}</span>
              </Figure>
            </Group>
          )}
        </Card>
      </SimpleGrid>
      {model.__typename === "CodeAgent" && <LastRuns id={model.id} />}
      <Card title="Details">
        <Facts>
          <Fact label="Model ID">
            <Copyable value={model.modelId} label="model ID" />
          </Fact>
          <Fact label="Type">{KIND_LABELS[kind].name}</Fact>
          <Fact label="Visibility">{model.visibility === "PUBLIC" ? "Public" : "Private"}</Fact>
          <Fact label="Safety checks">
            {model.requiredSafetyFeatures.length === 0 ? "None" : model.requiredSafetyFeatures.join(", ").toLowerCase()}
          </Fact>
          <KindFacts model={model} />
          <Fact label="Created">
            <When value={model.createdAt} />
          </Fact>
          <Fact label="Updated">
            <When value={model.updatedAt} />
          </Fact>
        </Facts>
      </Card>
    </Page>
  );
}

/** Facts that only one kind of model has. */
function KindFacts({ model }: { readonly model: MyModelWholeFragment }) {
  switch (model.__typename) {
    case "ProxyModel": {
      const stated = pricesOf(model.modality).filter((field) => model[field] !== "0");
      return (
        <>
          <Fact label="Modality">{MODALITIES.get(model.modality)}</Fact>
          <Fact label="Upstream">
            <span className="mono">{model.url ?? model.baseUrl}</span>, model <bdi className="mono">{model.upstreamModel}</bdi>
          </Fact>
          <Fact label="Prices">
            {stated.length === 0
              ? "Free"
              : stated.map((field) => (
                  <div key={field}>
                    {PRICE_LABELS[field]}: <span>{model[field]} credits</span>
                  </div>
                ))}
          </Fact>
          <Fact label="Accepts">{model.isPaidOnly ? "Purchased credits only" : "All credits"}</Fact>
          <Fact label="Rate limit">{model.perUserRpm === null ? "No limit" : `${model.perUserRpm} requests per minute per account`}</Fact>
          <Fact label="Fallbacks">{model.fallbackIds.length === 0 ? "None" : model.fallbackIds.join(", then ")}</Fact>
        </>
      );
    }
    case "EndpointAgentModel":
      return (
        <>
          <Fact label="Endpoint">
            <span className="mono">{model.url}</span>, model <bdi className="mono">{model.upstreamModel}</bdi>
          </Fact>
          <Fact label="Rate limit">{model.perUserRpm === null ? "No limit" : `${model.perUserRpm} requests per minute per account`}</Fact>
        </>
      );
    case "PromptAgent":
      return (
        <>
          <Fact label="Base model">{model.baseModelId}</Fact>
          <Fact label="System prompt">
            <bdi style={{ whiteSpace: "pre-wrap" }}>{model.systemPrompt}</bdi>
          </Fact>
          <Fact label="Tools">
            {model.mcpServers.length === 0
              ? "None"
              : SERVERS.filter(({ value }) => model.mcpServers.includes(value))
                  .map(({ label }) => label.split(":", 1)[0])
                  .join(", ")}
            {model.missingMcpServers.length > 0 && (
              <Text size="sm" fw={600} role="status">
                Not available on this gateway:{" "}
                {SERVERS.filter(({ value }) => model.missingMcpServers.includes(value))
                  .map(({ label }) => label.split(":", 1)[0])
                  .join(", ")}
                . Calls of their tools fail.
              </Text>
            )}
          </Fact>
        </>
      );
    case "CodeAgent":
      return (
        <>
          <Fact label="Repository">
            <Anchor size="sm" href={model.repository} target="_blank" rel="noreferrer" className="any-wrap">
              {model.repository}
            </Anchor>
          </Fact>
          <Fact label="Deployed commit">
            <Copyable value={model.deployedCommitSha} shown={model.deployedCommitSha.slice(0, 12)} label="commit" />
          </Fact>
        </>
      );
  }
}

type Scheduled = NonNullable<MyModelWholeFragment["pending"]>;

function Pending({ model, pending }: { readonly model: MyModelWholeFragment; readonly pending: Scheduled }) {
  const changes = [
    ...(pending.visibility === null ? [] : [pending.visibility === "PUBLIC" ? "becomes public" : "becomes private"]),
    ...(pending.isPaidOnly === null ? [] : [pending.isPaidOnly ? "accepts purchased credits only" : "accepts all credits"]),
    ...(pending.imagePricing === null ? [] : [pending.imagePricing === "TOKENS" ? "charges images by tokens" : "charges per image"]),
    ...PRICE_FIELDS.flatMap((field) =>
      pending[field] === null ? [] : [`${PRICE_LABELS[field].toLowerCase()}: ${pending[field]} credits`],
    ),
  ];
  return (
    <Alert color="orange" variant="light" title="Scheduled change">
      <Text size="sm" className="any-wrap">
        In <Countdown until={pending.effectiveAt} />: {changes.join("; ")}. Until then <bdi>{model.title}</bdi> stays unchanged. Editing it
        may replace the scheduled change.
      </Text>
    </Alert>
  );
}

function Countdown({ until }: { readonly until: string }) {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.max(0, Math.ceil((Date.parse(until) - now) / 1_000));
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor((seconds % 3_600) / 60)];
  const text = [...(hours > 0 ? [`${hours} h`] : []), ...(hours > 0 || minutes > 0 ? [`${minutes} min`] : []), `${seconds % 60} s`].join(
    " ",
  );
  return (
    <time dateTime={until} title={new Date(until).toLocaleString("en")}>
      <strong>{text}</strong>
    </time>
  );
}

function TestRegistered({ id }: { readonly id: string }) {
  return <Probe input={{ id }} form={useServerForm([])} />;
}

function Sync({ id }: { readonly id: string }) {
  const [{ fetching }, sync] = useMutation(MyModelsSyncDocument);
  const run = async () => {
    const { data, error } = await sync({ input: { id } }, OUTDATED);
    const synced = data?.syncAgent;
    if (synced) {
      const commit = synced.deployedCommitSha.slice(0, 12);
      toast({
        color: "green",
        title: synced.isUpdated ? "Latest commit deployed" : "Already up to date",
        message: `Commit ${commit}.`,
      });
    } else {
      toast({
        color: "red",
        title: "Deployment failed",
        message: error?.graphQLErrors[0]?.message ?? "Cannot reach the gateway.",
      });
    }
  };
  return (
    <Button variant="default" onClick={run} loading={fetching}>
      Deploy latest commit
    </Button>
  );
}

function Delete({ model: { id, title, modelId, visibility, usage } }: { readonly model: MyModelWholeFragment }) {
  const [, remove] = useMutation(MyModelsDeleteDocument);
  const navigate = useNavigate();
  return (
    <Confirm
      title={`Delete ${title}?`}
      action="Delete permanently"
      onConfirm={async () => {
        const { error } = await remove({ input: { id } }, OUTDATED);
        if (!error) void navigate(addressOf("my-models"), { replace: true });
        return error;
      }}
      trigger={(open) => (
        <Button color="red" variant="light" onClick={open}>
          Delete
        </Button>
      )}
    >
      <Text>
        Requests to <span className="mono">{modelId}</span> will fail because the model no longer exists. Requests in progress are
        completed. Past requests stay in the usage of their callers. This cannot be undone.
      </Text>
      {visibility === "PUBLIC" && usage !== null && usage.requests > 0 && (
        <Text mt="sm" c="dimmed" size="sm">
          Others have called it {usage.requests === 1 ? "once" : `${usage.requests.toLocaleString("en")} times`} in the last 30 days.
        </Text>
      )}
    </Confirm>
  );
}

function Figure({ label, children }: { readonly label: string; readonly children: ReactNode }) {
  return (
    <div>
      <Text size="sm" c="dimmed">
        {label}
      </Text>
      <div>{children}</div>
    </div>
  );
}
