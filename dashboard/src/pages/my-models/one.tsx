/** One model or agent: how it does, what it earns, what is scheduled, what it is; changed, tested, deployed anew, deleted. */
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
      why="It was deleted, or belongs to another account."
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
        <Card title="How it does">
          <Stack gap="md">
            <Group gap="xl" align="flex-start">
              <Figure label="Health">
                <Health health={model.health} />
              </Figure>
              <Figure label="Answered">
                <span data-requests={model.health.requests}>
                  {model.health.successRate === null ? "–" : `${Math.round(model.health.successRate * 100)}%`}
                </span>{" "}
                <span className="soft">of {model.health.requests}</span>
              </Figure>
            </Group>
            {canBeTested && <TestRegistered id={model.id} />}
          </Stack>
        </Card>
        <Card title="What others spent on it">
          {model.usage === null || model.usage.requests === 0 ? (
            <Empty title="Nobody else has called it in the last 30 days">
              {model.visibility === "PRIVATE" ? "Only you can: it is private." : "Your own calls are not counted."}
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
      <Card title="What it is">
        <Facts>
          <Fact label="Called as">
            <Copyable value={model.modelId} label="the model’s id" />
          </Fact>
          <Fact label="Kind">{KIND_LABELS[kind].name}</Fact>
          <Fact label="Who may call it">{model.visibility === "PUBLIC" ? "everybody at this gateway" : "only you"}</Fact>
          <Fact label="Checks">
            {model.requiredSafetyFeatures.length === 0 ? "none of its own" : model.requiredSafetyFeatures.join(", ").toLowerCase()}
          </Fact>
          <Own model={model} />
          <Fact label="Made">
            <When value={model.createdAt} />
          </Fact>
          <Fact label="Changed">
            <When value={model.updatedAt} />
          </Fact>
        </Facts>
      </Card>
    </Page>
  );
}

/** What only its kind has. */
function Own({ model }: { readonly model: MyModelWholeFragment }) {
  switch (model.__typename) {
    case "ProxyModel": {
      const stated = pricesOf(model.modality).filter((field) => model[field] !== "0");
      return (
        <>
          <Fact label="Does">{MODALITIES.get(model.modality)}</Fact>
          <Fact label="Upstream">
            <span className="mono">{model.url ?? model.baseUrl}</span>, there called <bdi className="mono">{model.upstreamModel}</bdi>
          </Fact>
          <Fact label="Prices">
            {stated.length === 0
              ? "free"
              : stated.map((field) => (
                  <div key={field}>
                    {PRICE_LABELS[field]}: <span title="credits">{model[field]}</span>
                  </div>
                ))}
          </Fact>
          <Fact label="Paid by">{model.isPaidOnly ? "bought credits only" : "any credits"}</Fact>
          <Fact label="Limit">
            {model.perUserRpm === null ? "none of its own" : `${model.perUserRpm} requests a minute of one account`}
          </Fact>
          <Fact label="Falls back to">{model.fallbackIds.length === 0 ? "nothing" : model.fallbackIds.join(", then ")}</Fact>
        </>
      );
    }
    case "EndpointAgentModel":
      return (
        <>
          <Fact label="Endpoint">
            <span className="mono">{model.url}</span>, there called <bdi className="mono">{model.upstreamModel}</bdi>
          </Fact>
          <Fact label="Limit">
            {model.perUserRpm === null ? "none of its own" : `${model.perUserRpm} requests a minute of one account`}
          </Fact>
        </>
      );
    case "PromptAgent":
      return (
        <>
          <Fact label="Asks">{model.baseModelId}</Fact>
          <Fact label="Is told first">
            <bdi style={{ whiteSpace: "pre-wrap" }}>{model.systemPrompt}</bdi>
          </Fact>
          <Fact label="Tools">
            {model.mcpServers.length === 0
              ? "none"
              : SERVERS.filter(({ value }) => model.mcpServers.includes(value))
                  .map(({ label }) => label.split(":", 1)[0])
                  .join(", ")}
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
          <Fact label="Runs commit">
            <Copyable value={model.deployedCommitSha} shown={model.deployedCommitSha.slice(0, 12)} label="the commit" />
          </Fact>
        </>
      );
  }
}

type Scheduled = NonNullable<MyModelWholeFragment["pending"]>;

function Pending({ model, pending }: { readonly model: MyModelWholeFragment; readonly pending: Scheduled }) {
  const changes = [
    ...(pending.visibility === null ? [] : [pending.visibility === "PUBLIC" ? "everybody may call it" : "only you may call it"]),
    ...(pending.isPaidOnly === null ? [] : [pending.isPaidOnly ? "only bought credits pay for it" : "any credits pay for it"]),
    ...(pending.imagePricing === null
      ? []
      : [pending.imagePricing === "TOKENS" ? "pictures are charged by tokens" : "pictures are charged each"]),
    ...PRICE_FIELDS.flatMap((field) =>
      pending[field] === null ? [] : [`${PRICE_LABELS[field].toLowerCase()}: ${pending[field]} credits`],
    ),
  ];
  return (
    <Alert color="orange" variant="light" title="A change is scheduled">
      <Text size="sm" className="any-wrap">
        In <Countdown until={pending.effectiveAt} />: {changes.join("; ")}. Until then <bdi>{model.title}</bdi> stays as it is, and editing
        it may replace the change.
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
        title: synced.isUpdated ? "The latest commit runs" : "The latest commit ran already",
        message: `Commit ${commit}.`,
      });
    } else {
      toast({
        color: "red",
        title: "It was not brought up to date",
        message: error?.graphQLErrors[0]?.message ?? "The gateway cannot be reached.",
      });
    }
  };
  return (
    <Button variant="default" onClick={run} loading={fetching}>
      Get the latest commit
    </Button>
  );
}

function Delete({ model: { id, title, modelId, visibility, usage } }: { readonly model: MyModelWholeFragment }) {
  const [, remove] = useMutation(MyModelsDeleteDocument);
  const navigate = useNavigate();
  return (
    <Confirm
      title={`Delete ${title}?`}
      action="Delete it"
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
        Whoever calls <span className="mono">{modelId}</span> is told from then on that there is no such model; what has begun goes on to
        its end. What was spent on it stays in everybody’s usage. This cannot be undone.
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
