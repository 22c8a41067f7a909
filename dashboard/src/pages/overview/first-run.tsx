/** Checklist of a new account: create a key, send a request, see it arrive. Each step is ticked by the state of the account. */
import { CheckCircleIcon } from "@heroicons/react/24/solid";
import { Alert, Anchor, Button, Group, Loader, Stack, Text, Title, VisuallyHidden } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { Link } from "react-router";
import { useMutation } from "urql";
import { useAnswer, useRefetchOnChange } from "../../client/answer.js";
import { sendGeneration } from "../../client/generate.js";
import {
  OverviewCreateKeyDocument,
  type OverviewCreateKeyMutation,
  OverviewFirstRunDocument,
  OverviewRunRequestDocument,
} from "../../client/generated/graphql.js";
import { GATEWAY_URL } from "../../client/place.js";
import { useLive } from "../../shell/live.js";
import { addressOf } from "../../shell/pages.js";
import { Copyable, Snippet } from "../../ui/copy.js";
import { formatCredits } from "../../ui/credits.js";
import { Card } from "../../ui/page.js";
import { Failure, Loading, QueryView } from "../../ui/states.js";

type Created = NonNullable<OverviewCreateKeyMutation["createApiKey"]>;

export default function FirstRun({ onDismiss }: { readonly onDismiss: () => void }) {
  const answer = useAnswer({ query: OverviewFirstRunDocument });
  const { feed, keysChangedAt } = useLive();
  useRefetchOnChange(keysChangedAt, answer.refetch);
  const [created, setCreated] = useState<Created | null>(null);
  return (
    <Card
      title="Get started"
      actions={
        <Button variant="subtle" size="compact-sm" onClick={onDismiss}>
          {feed.length > 0 ? "Done" : "Dismiss"}
        </Button>
      }
    >
      <QueryView answer={answer} loading={<Loading rows={3} height={48} />}>
        {({ me, free, models }) => {
          const model = (free?.nodes[0] ?? models?.nodes[0])?.restId ?? null;
          const known = created?.apiKey ?? me?.apiKeys?.nodes[0] ?? null;
          return (
            <Stack component="ol" gap="lg" m={0} p={0} style={{ listStyle: "none" }}>
              <Step number={1} title="Create an API key" isDone={known !== null}>
                <CreateKey known={known} created={created} onCreated={setCreated} />
              </Step>
              <Step number={2} title="Send a request" isDone={feed.length > 0}>
                {model === null ? (
                  <Text size="sm" c="dimmed">
                    This gateway has no text models yet.
                  </Text>
                ) : (
                  <SendRequest model={model} apiKey={created?.key ?? null} />
                )}
              </Step>
              <Step number={3} title="Check the result" isDone={feed.length > 0}>
                <Arrival />
              </Step>
            </Stack>
          );
        }}
      </QueryView>
    </Card>
  );
}

interface StepProps {
  readonly number: number;
  readonly title: string;
  readonly isDone: boolean;
  readonly children: ReactNode;
}

function Step({ number, title, isDone, children }: StepProps) {
  return (
    <Group component="li" align="flex-start" wrap="nowrap" gap="sm" data-done={isDone}>
      <span className="step" aria-hidden>
        {isDone ? <CheckCircleIcon width={26} /> : number}
      </span>
      <Stack gap="xs" flex={1} miw={0}>
        <Title order={3} size="h6" mt={3}>
          {title}
          {isDone && <VisuallyHidden> (done)</VisuallyHidden>}
        </Title>
        {children}
      </Stack>
    </Group>
  );
}

interface CreateKeyProps {
  readonly known: { readonly name: string; readonly start: string } | null;
  readonly created: Created | null;
  readonly onCreated: (created: Created) => void;
}

function CreateKey({ known, created, onCreated }: CreateKeyProps) {
  const [{ fetching, error }, create] = useMutation(OverviewCreateKeyDocument);
  const submit = async () => {
    const { data } = await create({ input: { name: "My first key" } });
    if (data?.createApiKey) onCreated(data.createApiKey);
  };
  if (created)
    return (
      <>
        <Text size="sm">Copy this key now. You won’t be able to see it again. The request below already has it.</Text>
        <div data-key-value>
          <Copyable value={created.key ?? ""} label="key" />
        </div>
      </>
    );
  if (known)
    return (
      <Text size="sm" c="dimmed" className="any-wrap">
        You have the key <bdi>{known.name}</bdi> ({known.start}…).{" "}
        <Anchor component={Link} to={addressOf("keys")} inherit underline="always">
          All keys
        </Anchor>
      </Text>
    );
  return (
    <>
      <Text size="sm" c="dimmed">
        Programs use keys to spend your credits.
      </Text>
      {error && <Failure error={error} />}
      <Group gap="sm">
        <Button size="sm" onClick={submit} loading={fetching}>
          Create key
        </Button>
        <Anchor component={Link} to={`${addressOf("keys")}?new`} size="sm">
          With a budget or other limits
        </Anchor>
      </Group>
    </>
  );
}

const PROMPT = "Say hello in five languages.";

function SendRequest({ model, apiKey }: { readonly model: string; readonly apiKey: string | null }) {
  const [run, setRun] = useState<RunState>({ status: "idle" });
  const start = async () => {
    setRun({ status: "running" });
    const input = { model, messages: [{ role: "USER" as const, content: PROMPT }], maxTokens: 100 };
    const answer = await sendGeneration(OverviewRunRequestDocument, { input }).answer;
    const done = answer?.data?.createChatCompletion;
    if (done) setRun({ status: "answered", text: textOf(done.raw), cost: done.receipt.cost });
    else setRun({ status: "failed", error: answer?.error });
  };
  return (
    <>
      <Text size="sm" c="dimmed">
        Paste this into a terminal, or run the same request here. It is charged like any other.
      </Text>
      <Snippet
        label="Example request"
        code={`curl ${GATEWAY_URL}/v1/chat/completions \\
  -H "Authorization: Bearer ${apiKey ?? "$SLUICE_API_KEY"}" \\
  -H "Content-Type: application/json" \\
  -d '{"model": "${model}", "max_tokens": 100, "messages": [{"role": "user", "content": "${PROMPT}"}]}'`}
      />
      <Group gap="sm">
        <Button size="sm" variant="default" onClick={start} loading={run.status === "running"}>
          Run it here
        </Button>
        <Anchor component={Link} to={addressOf("playground")} size="sm">
          Open the playground
        </Anchor>
      </Group>
      {run.status === "failed" && run.error && <Failure error={run.error} />}
      {run.status === "answered" && (
        <Alert variant="light" role="status" title={`Answered for ${formatCredits(run.cost)} credits`}>
          <Text size="sm" className="any-wrap">
            {run.text}
          </Text>
        </Alert>
      )}
    </>
  );
}

type RunState =
  | { readonly status: "idle" | "running" }
  | { readonly status: "answered"; readonly text: string; readonly cost: string }
  | { readonly status: "failed"; readonly error: Parameters<typeof Failure>[0]["error"] | undefined };

/** Text of a chat completion in OpenAI's format. */
function textOf(raw: unknown): string {
  const { choices } = raw as { readonly choices?: readonly { readonly message?: { readonly content?: unknown } }[] };
  const content = choices?.[0]?.message?.content;
  return typeof content === "string" ? content : "The model answered.";
}

function Arrival() {
  const { feed } = useLive();
  const [newest] = feed;
  if (!newest)
    return (
      <Group gap="xs">
        <Loader size={14} aria-hidden />
        <Text size="sm" c="dimmed">
          Waiting for your first request. It appears here without a reload.
        </Text>
      </Group>
    );
  return (
    <Text size="sm" className="any-wrap" role="status">
      {newest.modelUsedId} answered in {newest.responseTimeMs.toLocaleString("en")} ms for {formatCredits(newest.cost)} credits.{" "}
      <Anchor component={Link} to={`${addressOf("usage")}/${encodeURIComponent(newest.id)}`} inherit underline="always">
        View receipt
      </Anchor>
    </Text>
  );
}
