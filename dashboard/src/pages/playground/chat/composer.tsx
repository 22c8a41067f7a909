/** Message input. Enter sends the message, Shift+Enter starts a new line. */
import { PaperAirplaneIcon, StopIcon } from "@heroicons/react/24/outline";
import { Button, Group, Textarea } from "@mantine/core";
import type { FormEvent, KeyboardEvent } from "react";
import type { CombinedError } from "urql";
import { Refusal } from "../refusal.js";

export interface ComposerProps {
  readonly text: string;
  readonly onText: (text: string) => void;
  readonly isRunning: boolean;
  readonly blockedReason: string | null;
  readonly error: CombinedError | undefined;
  readonly onErrorClose: () => void;
  /** Tokens of output that the balance covers, when the request was refused for its cost. */
  readonly limit: number | null;
  /** Sends the message again with at most so many tokens of output. */
  readonly onLimit: (tokens: number) => void;
  readonly onSend: () => void;
  readonly onStop: () => void;
}

export function Composer({ text, onText, isRunning, blockedReason, error, onErrorClose, limit, onLimit, onSend, onStop }: ComposerProps) {
  const canSend = !isRunning && blockedReason === null && text.trim() !== "";
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (canSend) onSend();
  };
  const keyDown = (event: KeyboardEvent) => {
    // With an input method editor, Enter confirms a word.
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    if (canSend) onSend();
  };
  return (
    <form onSubmit={submit}>
      {error && (
        <Refusal
          error={error}
          onClose={onErrorClose}
          action={
            limit !== null && (
              <Button size="compact-sm" variant="default" onClick={() => onLimit(limit)} disabled={!canSend}>
                Limit to {limit.toLocaleString("en")} tokens
              </Button>
            )
          }
        />
      )}
      <Group align="flex-end" gap="xs" wrap="nowrap" mt={error ? "xs" : 0}>
        <Textarea
          aria-label="Message"
          placeholder="Type a message"
          description={blockedReason ?? undefined}
          inputWrapperOrder={["input", "description"]}
          autosize
          minRows={2}
          maxRows={10}
          value={text}
          onChange={({ target }) => onText(target.value)}
          onKeyDown={keyDown}
          style={{ flex: 1, minWidth: 0 }}
        />
        {isRunning ? (
          <Button variant="default" onClick={onStop} leftSection={<StopIcon width={16} />}>
            Stop
          </Button>
        ) : (
          <Button type="submit" disabled={!canSend} leftSection={<PaperAirplaneIcon width={16} />}>
            Send
          </Button>
        )}
      </Group>
    </form>
  );
}
