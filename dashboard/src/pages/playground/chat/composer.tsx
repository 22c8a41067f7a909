/** Message input. Enter sends the message, Shift+Enter starts a new line. */
import { PaperAirplaneIcon, PaperClipIcon, StopIcon } from "@heroicons/react/24/outline";
import { ActionIcon, Button, FileButton, Group, Text, Textarea, Tooltip } from "@mantine/core";
import { type ClipboardEvent, type FormEvent, type KeyboardEvent, useState } from "react";
import type { CombinedError } from "urql";
import { formatBytes } from "../../../ui/amounts.js";
import { Refusal } from "../refusal.js";
import { AttachmentList } from "./attachment-list.js";
import {
  ATTACHED_CHARS_MAX,
  ATTACHMENTS_MAX,
  type Attachment,
  lengthOf,
  PDF_BYTES_MAX,
  TEXT_BYTES_MAX,
  toAttachment,
} from "./attachments.js";

/** Bytes in a character of base64. */
const BASE64_SHARE = 3 / 4;
const TEXT_TYPES = "text/*,application/json,.md,.csv,.ts,.py,.go,.rs,.java,.c,.h,.yaml,.yml,.toml,.log";

export interface ComposerProps {
  readonly text: string;
  readonly onText: (text: string) => void;
  readonly attachments: readonly Attachment[];
  readonly onAttachments: (change: (before: readonly Attachment[]) => readonly Attachment[]) => void;
  /** False: the model reads no pictures, and so no PDFs, whose pages upstreams read as pictures. */
  readonly takesPictures: boolean;
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

export function Composer({
  text,
  onText,
  attachments,
  onAttachments,
  takesPictures,
  isRunning,
  blockedReason,
  error,
  onErrorClose,
  limit,
  onLimit,
  onSend,
  onStop,
}: ComposerProps) {
  const [problem, setProblem] = useState<string | null>(null);
  const hasContent = text.trim() !== "" || attachments.length > 0;
  const canSend = !isRunning && blockedReason === null && hasContent;
  const attach = async (files: readonly File[]) => {
    setProblem(null);
    const added: Attachment[] = [];
    for (const file of files) {
      try {
        const attachment = await toAttachment(file);
        if (attachment.kind === "picture" && !takesPictures) throw new Error("The selected model does not accept images.");
        if (attachment.kind === "pdf" && !takesPictures) throw new Error("The selected model does not accept PDFs.");
        added.push(attachment);
      } catch (error) {
        setProblem(error instanceof Error ? error.message : "The file could not be read.");
      }
    }
    onAttachments((before) => {
      const all = [...before, ...added];
      if (all.length > ATTACHMENTS_MAX) setProblem(`A message takes ${ATTACHMENTS_MAX} files.`);
      const kept = all.slice(0, ATTACHMENTS_MAX);
      if (kept.reduce((sum, attachment) => sum + lengthOf(attachment), 0) <= ATTACHED_CHARS_MAX) return kept;
      setProblem(`The files of a message may have ${formatBytes(ATTACHED_CHARS_MAX * BASE64_SHARE)} in all.`);
      return before;
    });
  };
  const paste = (event: ClipboardEvent) => {
    const files = [...event.clipboardData.files];
    if (files.length === 0) return;
    event.preventDefault();
    void attach(files);
  };
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
      <AttachmentList
        attachments={attachments}
        onRemove={(index) => onAttachments((before) => before.filter((_, other) => other !== index))}
      />
      {problem !== null && (
        <Text size="xs" c="var(--mantine-color-error)" role="alert" className="any-wrap">
          {problem}
        </Text>
      )}
      <Group align="flex-end" gap="xs" wrap="nowrap" mt={error || attachments.length > 0 ? "xs" : 0}>
        <FileButton multiple onChange={(files) => void attach(files)} {...(!takesPictures && { accept: TEXT_TYPES })}>
          {(props) => (
            <Tooltip
              label={
                takesPictures
                  ? `Attach up to ${ATTACHMENTS_MAX} images, PDFs (${formatBytes(PDF_BYTES_MAX)}) or text files (${formatBytes(TEXT_BYTES_MAX)})`
                  : "Attach text files. This model does not accept images or PDFs."
              }
              multiline
              maw={280}
            >
              <ActionIcon {...props} variant="default" size={36} aria-label="Attach files" disabled={attachments.length >= ATTACHMENTS_MAX}>
                <PaperClipIcon width={18} />
              </ActionIcon>
            </Tooltip>
          )}
        </FileButton>
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
          onPaste={paste}
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
