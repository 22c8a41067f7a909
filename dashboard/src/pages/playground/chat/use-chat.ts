/** State and actions of a conversation. A rejected message returns to the input. */
import { useCallback, useEffect, useRef, useState } from "react";
import type { CombinedError } from "urql";
import { newId } from "../history.js";
import type { Attachment } from "./attachments.js";
import { type Answer, emptyAnswer, messagesFor, type Settings, type Turn, toInput } from "./conversation.js";
import { Run } from "./run.js";

export interface ChatOptions {
  /** Model ids, one per side. */
  readonly models: readonly string[];
  readonly settings: Settings;
  /** Called when the gateway rejects a request. `removed` is the turn if all sides failed and it was removed. */
  readonly onRefused: (error: CombinedError, removed: Turn | null) => void;
  readonly onAccepted: () => void;
  /** Called when the user leaves during an answer, with the partial answers. */
  readonly onLeft: (turns: readonly Turn[]) => void;
}

const keyOf = (turn: string, side: number) => `${turn}/${side}`;

export function useChat(options: ChatOptions) {
  const [turns, setTurns] = useState<readonly Turn[]>([]);
  const [running, setRunning] = useState<ReadonlyMap<string, Run>>(new Map());
  const now = useRef({ turns, running, options });
  now.current.options = options;

  const putTurns = useCallback((next: readonly Turn[]) => {
    now.current.turns = next;
    setTurns(next);
  }, []);
  const putRun = useCallback((key: string, run: Run | null) => {
    const next = new Map(now.current.running);
    if (run) next.set(key, run);
    else next.delete(key);
    now.current.running = next;
    setRunning(next);
  }, []);
  const putAnswer = useCallback(
    (turnId: string, side: number, answer: Answer) =>
      putTurns(
        now.current.turns.map((turn) =>
          turn.id === turnId ? { ...turn, answers: turn.answers.map((other, index) => (index === side ? answer : other)) } : turn,
        ),
      ),
    [putTurns],
  );

  const generate = useCallback(
    (turnId: string, side: number) => {
      const { models, settings } = now.current.options;
      const model = models[side];
      if (model === undefined) return;
      const key = keyOf(turnId, side);
      const run: Run = new Run(model, (answer, error) => {
        if (now.current.running.get(key) !== run) return;
        putRun(key, null);
        putAnswer(turnId, side, answer);
        const turn = now.current.turns.find(({ id }) => id === turnId);
        if (error && turn && isRefused(turn) && turn.id === now.current.turns.at(-1)?.id && turn.text !== null) {
          putTurns(now.current.turns.slice(0, -1));
          now.current.options.onRefused(error, turn);
        } else if (error && answer.generationId === null) now.current.options.onRefused(error, null);
        else now.current.options.onAccepted();
      });
      putRun(key, run);
      putAnswer(turnId, side, emptyAnswer(model));
      run.start(toInput(model, messagesFor(now.current.turns, turnId, side, settings.systemPrompt), settings));
    },
    [putAnswer, putRun, putTurns],
  );

  const leaveAll = useCallback(() => {
    for (const [key, run] of now.current.running) {
      putRun(key, null);
      const [turnId = "", side = "0"] = key.split("/");
      putAnswer(turnId, Number(side), run.abandon());
    }
  }, [putAnswer, putRun]);

  /** Appends a message to the turns in `before`. */
  const send = useCallback(
    (text: string, attachments: readonly Attachment[] = [], before: readonly Turn[] = now.current.turns) => {
      leaveAll();
      const { models } = now.current.options;
      const turn: Turn = { id: newId(), text, attachments, results: null, answers: models.map(() => null) };
      putTurns([...before, turn]);
      for (const side of models.keys()) generate(turn.id, side);
    },
    [generate, leaveAll, putTurns],
  );

  const edit = useCallback(
    (turnId: string, text: string) => {
      leaveAll();
      const index = now.current.turns.findIndex(({ id }) => id === turnId);
      send(text, now.current.turns[index]?.attachments, now.current.turns.slice(0, index));
    },
    [leaveAll, send],
  );

  const retry = useCallback((turnId: string, side: number) => generate(turnId, side), [generate]);

  const sendToolResults = useCallback(
    (side: number, results: Readonly<Record<string, string>>) => {
      const { models } = now.current.options;
      const turn: Turn = { id: newId(), text: null, results, answers: models.map(() => null) };
      putTurns([...now.current.turns, turn]);
      generate(turn.id, side);
    },
    [generate, putTurns],
  );

  const stop = useCallback(() => {
    for (const run of [...now.current.running.values()]) run.stop();
  }, []);

  const show = useCallback(
    (next: readonly Turn[]) => {
      for (const run of now.current.running.values()) run.abandon();
      now.current.running = new Map();
      setRunning(now.current.running);
      putTurns(next);
    },
    [putTurns],
  );

  const setCost = useCallback(
    (generationId: string, cost: string) => {
      const isPending = (answer: Answer | null) => answer?.generationId === generationId && answer.cost === null;
      if (!now.current.turns.some(({ answers }) => answers.some(isPending))) return;
      putTurns(
        now.current.turns.map((turn) => ({
          ...turn,
          answers: turn.answers.map((answer) => (answer && isPending(answer) ? { ...answer, cost } : answer)),
        })),
      );
    },
    [putTurns],
  );

  useEffect(() => {
    const leave = () => {
      if (now.current.running.size === 0) return;
      leaveAll();
      now.current.options.onLeft(now.current.turns);
    };
    window.addEventListener("pagehide", leave);
    return () => {
      window.removeEventListener("pagehide", leave);
      leave();
    };
  }, [leaveAll]);

  const runOf = useCallback((turnId: string, side: number) => running.get(keyOf(turnId, side)) ?? null, [running]);
  return { turns, isRunning: running.size > 0, runOf, send, edit, retry, sendToolResults, stop, show, setCost };
}

/** Whether every side failed before its first piece. */
function isRefused({ answers }: Turn): boolean {
  return answers.every((answer) => answer !== null && answer.state === "failed" && answer.generationId === null);
}
