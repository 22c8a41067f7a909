/** State of a realtime session: its turns, the tokens used, and whether the microphone is on. */
import { useEffect, useRef, useState } from "react";
import { Voice, type VoiceOptions, type VoiceUsage } from "./voice.js";

export interface Turn {
  /** The answer's id, or the time at which the person began to speak. */
  readonly id: string;
  readonly isOwn: boolean;
  readonly text: string;
}

export type VoiceState = "idle" | "connecting" | "ready" | "talking" | "waiting";

const NO_USAGE: VoiceUsage = { inputTextTokens: 0, inputAudioTokens: 0, inputCachedTokens: 0, outputTextTokens: 0, outputAudioTokens: 0 };
/** Older turns are left out. */
const TURNS_MAX = 200;

export function useVoice() {
  const [state, setState] = useState<VoiceState>("idle");
  const [turns, setTurns] = useState<readonly Turn[]>([]);
  const [usage, setUsage] = useState(NO_USAGE);
  const [problem, setProblem] = useState<string | null>(null);
  const voice = useRef<Voice | null>(null);
  const isLeft = useRef(false);
  const talkedAt = useRef(0);
  useEffect(() => {
    isLeft.current = false;
    return () => {
      isLeft.current = true;
      voice.current?.close();
    };
  }, []);

  const add = (turn: Turn) => setTurns((before) => [...before, turn].slice(-TURNS_MAX));

  const start = async (options: VoiceOptions) => {
    setProblem(null);
    setTurns([]);
    setUsage(NO_USAGE);
    setState("connecting");
    const microphone = await openMicrophone();
    if (typeof microphone === "string") {
      setState("idle");
      return setProblem(microphone);
    }
    if (isLeft.current) {
      for (const track of microphone.getTracks()) track.stop();
      return;
    }
    voice.current = new Voice(microphone, options, {
      onReady: () => setState("ready"),
      onSpeech: () => add({ id: `own-${Date.now()}`, isOwn: true, text: "You spoke." }),
      onText: (id, text) =>
        setTurns((before) =>
          before.some((turn) => turn.id === id)
            ? before.map((turn) => (turn.id === id ? { ...turn, text: turn.text + text } : turn))
            : [...before, { id, isOwn: false, text }].slice(-TURNS_MAX),
        ),
      onAnswered: (more) => {
        setUsage((before) => sumOf(before, more));
        setState((before) => (before === "waiting" ? "ready" : before));
      },
      onError: (message) => {
        setProblem(message);
        setState((before) => (before === "waiting" ? "ready" : before));
      },
      onEnd: (wasOpen) => {
        voice.current = null;
        setState("idle");
        if (!wasOpen) setProblem("The gateway refused the session. Logs has the reason.");
      },
    });
  };
  const talk = () => {
    if (!voice.current) return;
    voice.current.isTalking = true;
    talkedAt.current = Date.now();
    setProblem(null);
    setState("talking");
  };
  const send = () => {
    const seconds = (Date.now() - talkedAt.current) / 1_000;
    add({ id: `own-${talkedAt.current}`, isOwn: true, text: `You spoke for ${seconds.toFixed(1)} s.` });
    setState("waiting");
    voice.current?.send();
  };
  return { state, turns, usage, problem, start, talk, send, stop: () => voice.current?.close() };
}

function sumOf(one: VoiceUsage, other: VoiceUsage): VoiceUsage {
  return {
    inputTextTokens: one.inputTextTokens + other.inputTextTokens,
    inputAudioTokens: one.inputAudioTokens + other.inputAudioTokens,
    inputCachedTokens: one.inputCachedTokens + other.inputCachedTokens,
    outputTextTokens: one.outputTextTokens + other.outputTextTokens,
    outputAudioTokens: one.outputAudioTokens + other.outputAudioTokens,
  };
}

/** The microphone's stream, or the reason why there is none. */
async function openMicrophone(): Promise<MediaStream | string> {
  try {
    return await navigator.mediaDevices.getUserMedia({ audio: { echoCancellation: true, noiseSuppression: true } });
  } catch (error) {
    const isRefused = error instanceof DOMException && error.name === "NotAllowedError";
    return isRefused
      ? "This page may not use the microphone. Allow it in your browser."
      : "No microphone found. Connect one, and try again.";
  }
}
