/** Answer of one model, streaming or complete: text, reasoning, tool calls, cost and errors. */
import { ArrowPathIcon, CheckIcon, ClipboardIcon } from "@heroicons/react/24/outline";
import { ActionIcon, Alert, Anchor, Button, CopyButton, Group, Text, Textarea, Tooltip } from "@mantine/core";
import { type FormEvent, memo, useState, useSyncExternalStore } from "react";
import { Link } from "react-router";
import { addressOf } from "../../../shell/pages.js";
import { Credits, formatCredits } from "../../../ui/credits.js";
import { indentedJson } from "../../../ui/program-text.js";
import { AnswerText, GrowingAnswer } from "./answer-text.js";
import type { Answer, ToolCall } from "./conversation.js";
import type { Run, RunView } from "./run.js";

export interface AnswerViewProps {
  readonly answer: Answer;
  readonly run: Run | null;
  /** Estimated cost so far, in credits. */
  readonly estimate: (charactersOut: number) => string | null;
  /** Null for all answers but those of the last turn. */
  readonly onRetry: (() => void) | null;
  readonly onResults: ((results: Readonly<Record<string, string>>) => void) | null;
}

export const AnswerView = memo(function AnswerView({ answer, run, estimate, onRetry, onResults }: AnswerViewProps) {
  return (
    <article className="answer" aria-label={`Answer of ${answer.modelId}`} data-state={run ? "running" : answer.state}>
      <Text size="xs" c="dimmed" fw={600} mb={4} className="any-wrap">
        {answer.modelId}
      </Text>
      {run ? <Live run={run} estimate={estimate} /> : <Finished answer={answer} onRetry={onRetry} onResults={onResults} />}
    </article>
  );
});

function Live({ run, estimate }: { readonly run: Run; readonly estimate: AnswerViewProps["estimate"] }) {
  const { blocks, tail, reasoning, toolCalls, charactersOut } = useSyncExternalStore<RunView>(run.subscribe, run.view);
  const cost = estimate(charactersOut);
  return (
    <>
      <Reasoning text={reasoning} isOpen={blocks.length === 0 && tail === ""} />
      <GrowingAnswer blocks={blocks} tail={tail} />
      <Calls calls={toolCalls} />
      <Text size="xs" c="dimmed" mt={6} mih={18} data-estimate={cost ?? ""}>
        {charactersOut === 0 ? "Waiting for the first token" : "Generating"}
        {cost !== null && `: about ${formatCredits(cost)} credits so far`}
      </Text>
    </>
  );
}

function Finished({ answer, onRetry, onResults }: Pick<AnswerViewProps, "answer" | "onRetry" | "onResults">) {
  const { text, reasoning, toolCalls, state, failure, finishReason, receipt } = answer;
  return (
    <>
      <Reasoning text={reasoning} isOpen={false} />
      {text !== "" && <AnswerText text={text} />}
      <Calls calls={toolCalls} />
      {state === "failed" && (
        <Alert color="red" variant="light" role="alert" title={text === "" ? "No answer" : "Answer interrupted"} mt="xs">
          <Group justify="space-between" align="flex-start" gap="xs">
            <Text size="sm" className="any-wrap" maw="100%">
              {failure}
              {text !== "" && " The partial answer is kept and charged."}
            </Text>
            {onRetry && (
              <Button size="compact-sm" variant="default" onClick={onRetry}>
                Try again
              </Button>
            )}
          </Group>
        </Alert>
      )}
      {(state === "stopped" || state === "running") && (
        <Text size="sm" c="dimmed" mt={6}>
          {state === "stopped" ? "Stopped." : "Interrupted before it was complete."}{" "}
          {onRetry && (
            <Button size="compact-xs" variant="default" onClick={onRetry}>
              Try again
            </Button>
          )}
        </Text>
      )}
      {finishReason === "LENGTH" && <Note>The answer reached its length limit. Raise Max tokens, or ask the model to continue.</Note>}
      {finishReason === "CONTENT_FILTER" && <Note>A content filter of the upstream removed the rest of the answer.</Note>}
      {receipt?.warnings.map((warning) => (
        <Note key={warning}>{warning}</Note>
      ))}
      <Group gap={4} mt={6} align="center">
        <Spent answer={answer} />
        {text !== "" && <CopyAnswer text={text} modelId={answer.modelId} />}
        {state === "done" && onRetry && <Regenerate modelId={answer.modelId} onClick={onRetry} />}
      </Group>
      {onResults && state === "done" && toolCalls.length > 0 && <Results calls={toolCalls} onResults={onResults} />}
    </>
  );
}

function CopyAnswer({ text, modelId }: { readonly text: string; readonly modelId: string }) {
  return (
    <CopyButton value={text}>
      {({ copied, copy }) => (
        <Tooltip label={copied ? "Copied" : "Copy answer"}>
          <ActionIcon
            variant="subtle"
            color="gray"
            size={24}
            onClick={copy}
            aria-label={copied ? "Copied" : `Copy the answer of ${modelId}`}
          >
            {copied ? <CheckIcon width={16} /> : <ClipboardIcon width={16} />}
          </ActionIcon>
        </Tooltip>
      )}
    </CopyButton>
  );
}

function Regenerate({ modelId, onClick }: { readonly modelId: string; readonly onClick: () => void }) {
  return (
    <Tooltip label="Regenerate">
      <ActionIcon variant="subtle" color="gray" size={24} onClick={onClick} aria-label={`Regenerate the answer of ${modelId}`}>
        <ArrowPathIcon width={16} />
      </ActionIcon>
    </Tooltip>
  );
}

function Note({ children }: { readonly children: string }) {
  return (
    <Text size="sm" c="orange" mt={6} className="any-wrap">
      {children}
    </Text>
  );
}

function Spent({ answer: { modelId, cost, generationId, receipt } }: { readonly answer: Answer }) {
  if (generationId === null) return null;
  const parts = receipt
    ? [
        `${receipt.usage.inputTextTokens + receipt.usage.inputCachedTokens} input tokens`,
        `${receipt.usage.outputTextTokens + receipt.usage.outputReasoningTokens} output tokens`,
        `${(receipt.responseMs / 1_000).toFixed(1)} s`,
        ...(receipt.modelUsedId === modelId ? [] : [`fallback ${receipt.modelUsedId}`]),
      ]
    : [];
  return (
    <Text size="xs" c="dimmed" className="any-wrap" data-cost={cost ?? ""}>
      {cost === null ? "Cost pending" : <Credits value={cost} unit />}
      {parts.length > 0 && ` · ${parts.join(" · ")}`}
      {cost !== null && (
        <>
          {" · "}
          <Anchor component={Link} to={`${addressOf("usage")}/${generationId}`} inherit underline="always">
            Receipt
          </Anchor>
        </>
      )}
    </Text>
  );
}

function Reasoning({ text, isOpen }: { readonly text: string; readonly isOpen: boolean }) {
  if (text === "") return null;
  return (
    <details className="thinking" open={isOpen}>
      <summary>Reasoning</summary>
      <div className="plain">{text}</div>
    </details>
  );
}

function Calls({ calls }: { readonly calls: readonly ToolCall[] }) {
  return calls.map(({ id, name, arguments: given }, index) => (
    <div key={id || index}>
      <Text size="sm" fw={600} mt="xs" className="any-wrap">
        Tool call: <span className="mono">{name}</span>
      </Text>
      <div className="code">
        <div className="plain">{indentedJson(given)}</div>
      </div>
    </div>
  ));
}

function Results({
  calls,
  onResults,
}: {
  readonly calls: readonly ToolCall[];
  readonly onResults: NonNullable<AnswerViewProps["onResults"]>;
}) {
  const [results, setResults] = useState<Readonly<Record<string, string>>>({});
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onResults(Object.fromEntries(calls.map(({ id }) => [id, results[id] ?? ""])));
  };
  return (
    <form onSubmit={submit}>
      {calls.map(({ id, name }) => (
        <Textarea
          key={id}
          label={`Result of ${name}`}
          autosize
          minRows={1}
          maxRows={8}
          mt="xs"
          value={results[id] ?? ""}
          onChange={({ target }) => setResults((before) => ({ ...before, [id]: target.value }))}
        />
      ))}
      <Button type="submit" size="compact-sm" variant="default" mt="xs">
        Send tool results
      </Button>
    </form>
  );
}
