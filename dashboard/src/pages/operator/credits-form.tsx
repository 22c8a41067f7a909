/** Form of an operator that moves credits of an account, with a question before it does. */
import { Button, Group, Modal, Select, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { type FormEvent, type ReactNode, useState } from "react";
import type { CombinedError } from "urql";
import type { MeterSource } from "../../client/generated/graphql.js";
import { useServerForm } from "../../ui/server-form.js";
import { Failure } from "../../ui/states.js";

const BUCKETS: readonly MeterSource[] = ["PACK", "CRYPTO", "TIER"];

/** The entered values. */
export interface CreditsMove {
  /** Idempotency key of this form: a repeat after a lost response moves nothing twice. */
  readonly id: string;
  readonly bucket: MeterSource;
  readonly credits: string;
  /** Null: none. */
  readonly note: string | null;
}

interface Answer {
  readonly error?: CombinedError | undefined;
}

export interface CreditsFormProps<Sent extends Answer> {
  readonly creditsDescription: string;
  readonly bucketLabel: (bucket: MeterSource) => string;
  readonly noteDescription: string;
  readonly question: (move: CreditsMove) => ReactNode;
  /** Label of the button that answers the question. */
  readonly action: (move: CreditsMove) => string;
  readonly isDangerous?: boolean;
  readonly isBusy: boolean;
  /** Resolves with the answer, whose errors are shown at their fields. */
  readonly send: (move: CreditsMove) => Promise<Sent>;
  /** Called when credits were moved. */
  readonly onDone: (answer: Sent, move: CreditsMove) => void;
  readonly onClose: () => void;
}

export function CreditsForm<Sent extends Answer>(props: CreditsFormProps<Sent>) {
  const { question, action, isDangerous = false, isBusy, send, onDone, onClose, ...labels } = props;
  const form = useServerForm(["credits", "bucket", "note"]);
  const [id] = useState(createUuid);
  const [bucket, setBucket] = useState<MeterSource>("PACK");
  const [credits, setCredits] = useState("");
  const [note, setNote] = useState("");
  const [isConfirming, setConfirming] = useState(false);
  const move: CreditsMove = { id, bucket, credits: credits.trim(), note: note === "" ? null : note };
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (!isConfirming && move.credits !== "") {
      setConfirming(true);
      return;
    }
    const answer = await send(move);
    if (form.accept(answer)) onDone(answer, move);
    else setConfirming(false);
  };
  return (
    <form onSubmit={submit} noValidate>
      <Stack>
        {form.rest && <Failure error={form.rest} />}
        {isConfirming ? (
          <Text role="status">{question(move)}</Text>
        ) : (
          <>
            <TextInput
              label="Credits"
              description={labels.creditsDescription}
              {...form.text("credits", credits, setCredits)}
              inputMode="decimal"
              autoComplete="off"
              required
              data-autofocus
            />
            <Select
              label="Bucket"
              data={BUCKETS.map((value) => ({ value, label: labels.bucketLabel(value) }))}
              value={bucket}
              onChange={(value) => setBucket(BUCKETS.find((each) => each === value) ?? "PACK")}
              allowDeselect={false}
              error={form.errorOf("bucket")}
            />
            <Textarea
              label="Note"
              description={labels.noteDescription}
              {...form.text("note", note, setNote)}
              autosize
              minRows={2}
              maxRows={5}
            />
          </>
        )}
        <Group justify="flex-end">
          <Button variant="default" onClick={isConfirming ? () => setConfirming(false) : onClose}>
            {isConfirming ? "Back" : "Cancel"}
          </Button>
          <Button type="submit" {...(isDangerous && { color: "red" })} loading={isBusy}>
            {isConfirming ? action(move) : "Continue"}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

export interface CreditsDialogProps {
  /** Title of the dialog and label of its button. */
  readonly title: string;
  readonly variant?: "default" | "filled";
  readonly children: (close: () => void) => ReactNode;
}

export function CreditsDialog({ title, variant = "filled", children }: CreditsDialogProps) {
  const [isOpen, { open, close }] = useDisclosure();
  return (
    <>
      <Button variant={variant} onClick={open}>
        {title}
      </Button>
      <Modal opened={isOpen} onClose={close} title={title} closeOnClickOutside={false}>
        {children(close)}
      </Modal>
    </>
  );
}

/** Replaces `crypto.randomUUID`, which browsers offer on https pages only. */
function createUuid(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const hex = Array.from(bytes, (byte, index) => {
    const value = index === 6 ? (byte & 0x0f) | 0x40 : index === 8 ? (byte & 0x3f) | 0x80 : byte;
    return value.toString(16).padStart(2, "0");
  }).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
