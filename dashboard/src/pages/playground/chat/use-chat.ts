/** What a conversation can do: send, edit, try again, bring results of tools, stop. Whatever fails, nothing that was typed is lost. */
import { useCallback, useEffect, useRef, useState } from "react";
import type { CombinedError } from "urql";
import { newId } from "../history.js";
import { type Answer, emptyAnswer, messagesFor, type Settings, type Turn, toInput } from "./conversation.js";
import { Run } from "./run.js";

export interface ChatOptions {
  /** Of each side. */
  readonly models: readonly string[];
  readonly settings: Settings;
  /** A turn that was refused as a whole is taken back: its text goes back to where it was typed. */
  readonly onRefused: (error: CombinedError, text: string | null) => void;
  readonly onAccepted: () => void;
  /** The page is left while something was answered: these are the turns with as much as had come. */
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

  const ask = useCallback(
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
          now.current.options.onRefused(error, turn.text);
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

  /** Everything behind the turn goes; it is then asked with the text. */
  const say = useCallback(
    (text: string, before: readonly Turn[] = now.current.turns) => {
      leaveAll();
      const { models } = now.current.options;
      const turn: Turn = { id: newId(), text, results: null, answers: models.map(() => null) };
      putTurns([...before, turn]);
      for (const side of models.keys()) ask(turn.id, side);
    },
    [ask, leaveAll, putTurns],
  );

  const edit = useCallback(
    (turnId: string, text: string) => {
      leaveAll();
      say(
        text,
        now.current.turns.slice(
          0,
          now.current.turns.findIndex(({ id }) => id === turnId),
        ),
      );
    },
    [leaveAll, say],
  );

  /** Of the last turn: earlier ones are edited. */
  const retry = useCallback((turnId: string, side: number) => ask(turnId, side), [ask]);

  const sendToolResults = useCallback(
    (side: number, results: Readonly<Record<string, string>>) => {
      const { models } = now.current.options;
      const turn: Turn = { id: newId(), text: null, results, answers: models.map(() => null) };
      putTurns([...now.current.turns, turn]);
      ask(turn.id, side);
    },
    [ask, putTurns],
  );

  const stop = useCallback(() => {
    for (const run of [...now.current.running.values()]) run.stop();
  }, []);

  /** Shows another conversation, or a new one. */
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
      const isMeant = (answer: Answer | null) => answer?.generationId === generationId && answer.cost === null;
      if (!now.current.turns.some(({ answers }) => answers.some(isMeant))) return;
      putTurns(
        now.current.turns.map((turn) => ({
          ...turn,
          answers: turn.answers.map((answer) => (answer && isMeant(answer) ? { ...answer, cost } : answer)),
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
  return { turns, isRunning: running.size > 0, runOf, say, edit, retry, sendToolResults, stop, show, setCost };
}

/** Every side has failed before it had said anything. */
function isRefused({ answers }: Turn): boolean {
  return answers.every((answer) => answer !== null && answer.state === "failed" && answer.generationId === null);
}
