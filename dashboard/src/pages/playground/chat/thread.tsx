/** List of turns. It scrolls along with a growing answer unless the user has scrolled up. */
import { Box, Button, Group, Stack, Text, Textarea, VisuallyHidden } from "@mantine/core";
import { type FormEvent, memo, type ReactNode, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { estimateCost } from "../estimate.js";
import type { PlaygroundModel } from "../models.js";
import { AnswerView } from "./answer.js";
import { AttachmentList } from "./attachment-list.js";
import type { Attachment } from "./attachments.js";
import { charactersOf, messagesFor, type Turn } from "./conversation.js";
import type { useChat } from "./use-chat.js";

type Chat = ReturnType<typeof useChat>;

export interface ThreadProps {
  readonly chat: Chat;
  readonly models: readonly (PlaygroundModel | null)[];
  readonly systemPrompt: string;
  readonly empty: ReactNode;
}

export function Thread({ chat, models, systemPrompt, empty }: ThreadProps) {
  const { log, content, isAtEnd, toEnd } = useFollowedEnd();
  const { turns, isRunning } = chat;
  return (
    <>
      <Box ref={log} className="log" role="log" aria-label="Conversation" aria-live="off" tabIndex={0}>
        <div ref={content}>
          {turns.length === 0
            ? empty
            : turns.map((turn, index) => (
                <TurnView
                  key={turn.id}
                  turn={turn}
                  turns={turns}
                  isLast={index === turns.length - 1}
                  chat={chat}
                  models={models}
                  systemPrompt={systemPrompt}
                />
              ))}
        </div>
      </Box>
      {!isAtEnd && isRunning && (
        <Button size="compact-sm" variant="default" onClick={toEnd} style={{ alignSelf: "center" }}>
          Scroll to bottom
        </Button>
      )}
      <VisuallyHidden role="status">
        {isRunning ? "The model is answering." : turns.length > 0 ? "The answer is complete." : ""}
      </VisuallyHidden>
    </>
  );
}

interface TurnViewProps extends Omit<ThreadProps, "empty"> {
  readonly turn: Turn;
  readonly turns: readonly Turn[];
  readonly isLast: boolean;
}

function TurnView({ turn, turns, isLast, chat, models, systemPrompt }: TurnViewProps) {
  const { edit, retry, sendToolResults, runOf, isRunning } = chat;
  return (
    <section className="turn" aria-label={`Turn ${turns.indexOf(turn) + 1}`}>
      {turn.text !== null ? (
        <UserMessage turnId={turn.id} text={turn.text} attachments={turn.attachments ?? NO_ATTACHMENTS} onEdit={edit} />
      ) : (
        Object.entries(turn.results ?? {}).map(([call, result]) => (
          <div key={call} className="message">
            <Text size="xs" c="dimmed" fw={600}>
              Tool result
            </Text>
            <div className="plain">{result}</div>
          </div>
        ))
      )}
      <div className="answers">
        {turn.answers.map(
          (answer, side) =>
            answer && (
              <SideView
                key={side}
                turn={turn}
                turns={turns}
                side={side}
                answer={answer}
                run={runOf(turn.id, side)}
                model={models.find((model) => model?.restId === answer.modelId) ?? null}
                systemPrompt={systemPrompt}
                retry={isLast && !isRunning ? retry : null}
                sendToolResults={isLast && !isRunning ? sendToolResults : null}
              />
            ),
        )}
      </div>
    </section>
  );
}

interface SideViewProps {
  readonly turn: Turn;
  readonly turns: readonly Turn[];
  readonly side: number;
  readonly answer: NonNullable<Turn["answers"][number]>;
  readonly run: ReturnType<Chat["runOf"]>;
  readonly model: PlaygroundModel | null;
  readonly systemPrompt: string;
  readonly retry: Chat["retry"] | null;
  readonly sendToolResults: Chat["sendToolResults"] | null;
}

function SideView({ turn, turns, side, answer, run, model, systemPrompt, retry, sendToolResults }: SideViewProps) {
  const charactersIn = useMemo(
    () => (run ? charactersOf(messagesFor(turns, turn.id, side, systemPrompt)) : 0),
    [run, turns, turn.id, side, systemPrompt],
  );
  const estimate = useCallback(
    (charactersOut: number) => (model ? estimateCost(model.pricing, charactersIn, charactersOut) : null),
    [model, charactersIn],
  );
  const onRetry = useMemo(() => retry && (() => retry(turn.id, side)), [retry, turn.id, side]);
  const onResults = useMemo(
    () => sendToolResults && ((results: Readonly<Record<string, string>>) => sendToolResults(side, results)),
    [sendToolResults, side],
  );
  return <AnswerView answer={answer} run={run} estimate={estimate} onRetry={onRetry} onResults={onResults} />;
}

const NO_ATTACHMENTS: readonly Attachment[] = [];

const UserMessage = memo(function UserMessage({
  turnId,
  text,
  attachments,
  onEdit,
}: {
  readonly turnId: string;
  readonly text: string;
  readonly attachments: readonly Attachment[];
  readonly onEdit: Chat["edit"];
}) {
  const [draft, setDraft] = useState<string | null>(null);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (draft === null || draft.trim() === "") return;
    setDraft(null);
    onEdit(turnId, draft);
  };
  if (draft !== null) {
    return (
      <form onSubmit={submit} className="message">
        <Textarea
          label="Your message"
          autosize
          minRows={2}
          maxRows={12}
          value={draft}
          onChange={({ target }) => setDraft(target.value)}
          data-autofocus
          autoFocus
        />
        <Group justify="flex-end" gap="xs" mt="xs">
          <Text size="xs" c="dimmed" mr="auto">
            All later messages are replaced.
          </Text>
          <Button size="compact-sm" variant="default" onClick={() => setDraft(null)}>
            Cancel
          </Button>
          <Button size="compact-sm" type="submit">
            Resend
          </Button>
        </Group>
      </form>
    );
  }
  return (
    <Group className="message" justify="space-between" align="flex-start" wrap="nowrap" gap="xs">
      <Stack gap={0} miw={0}>
        <Text size="xs" c="dimmed" fw={600}>
          You
        </Text>
        {text !== "" && <bdi className="plain">{text}</bdi>}
        <AttachmentList attachments={attachments} />
      </Stack>
      <Button size="compact-xs" variant="subtle" color="gray" onClick={() => setDraft(text)} style={{ flex: "none" }}>
        Edit
      </Button>
    </Group>
  );
});

/** Distance from the end, in pixels, that still counts as the end. */
const END = 48;

function useFollowedEnd() {
  const log = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const [isAtEnd, setAtEnd] = useState(true);
  const follows = useRef(true);
  useEffect(() => {
    const scrolled = log.current;
    const inner = content.current;
    if (!scrolled || !inner) return;
    let before = scrolled.scrollTop;
    const note = () => {
      const { scrollTop, scrollHeight, clientHeight } = scrolled;
      if (scrollHeight - scrollTop - clientHeight < END) follows.current = true;
      // A growing answer moves the end, too. Only scrolling up stops the following.
      else if (scrollTop < before) follows.current = false;
      before = scrollTop;
      setAtEnd(follows.current);
    };
    const grown = new ResizeObserver(() => {
      if (follows.current) scrolled.scrollTop = scrolled.scrollHeight;
    });
    scrolled.addEventListener("scroll", note, { passive: true });
    grown.observe(inner);
    return () => {
      scrolled.removeEventListener("scroll", note);
      grown.disconnect();
    };
  }, []);
  const toEnd = () => {
    follows.current = true;
    setAtEnd(true);
    if (log.current) log.current.scrollTop = log.current.scrollHeight;
  };
  return { log, content, isAtEnd, toEnd };
}
