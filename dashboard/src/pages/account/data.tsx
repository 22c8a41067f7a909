/** Export of all data, and deletion of the account. */
import { Alert, Button, Group, List, Modal, PasswordInput, Stack, Text, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { type FormEvent, useRef, useState } from "react";
import { CombinedError, useMutation } from "urql";
import { useAnswer } from "../../client/answer.js";
import {
  AccountDataDocument,
  type AccountDataQuery,
  AccountDeleteDocument,
  type AccountDeletionObstacle,
} from "../../client/generated/graphql.js";
import { BASE } from "../../client/place.js";
import { formatCount } from "../../ui/amounts.js";
import { Credits, formatCredits } from "../../ui/credits.js";
import { Card } from "../../ui/page.js";
import { useServerForm } from "../../ui/server-form.js";
import { Failure, Loading, QueryView } from "../../ui/states.js";
import { exportAccount, type Progress, saveAs } from "./export.js";

type Me = NonNullable<AccountDataQuery["me"]>;
type Preview = NonNullable<Me["deletionPreview"]>;

const COUNT = new Intl.NumberFormat("en");

export function Data() {
  const answer = useAnswer({ query: AccountDataDocument, requestPolicy: "cache-and-network" });
  return (
    <QueryView answer={answer} loading={<Loading rows={2} height={160} />}>
      {({ me }) =>
        me && (
          <Stack>
            <Export handle={me.handle} />
            {me.deletionPreview && <Deletion me={me} preview={me.deletionPreview} />}
          </Stack>
        )
      }
    </QueryView>
  );
}

function Export({ handle }: { readonly handle: string }) {
  const [progress, setProgress] = useState<Progress | null>(null);
  const [outcome, setOutcome] = useState<string | null>(null);
  const [error, setError] = useState<CombinedError>();
  const stop = useRef<AbortController | null>(null);
  const run = async () => {
    const controller = new AbortController();
    stop.current = controller;
    setError(undefined);
    setOutcome(null);
    setProgress({ section: "PROFILE", items: 0 });
    try {
      const file = await exportAccount(setProgress, controller.signal);
      if (file) saveAs(file, `sluice-${handle}-${new Date().toISOString().slice(0, 10)}.json`);
      setOutcome(file ? "Download complete." : "Cancelled. Nothing was saved.");
    } catch (failure) {
      const networkError = failure instanceof Error ? failure : new Error(String(failure));
      setError(failure instanceof CombinedError ? failure : new CombinedError({ networkError }));
    }
    stop.current = null;
    setProgress(null);
  };
  return (
    <Card title="Download my data">
      <Stack gap="sm">
        <Text maw="46rem" size="sm">
          One JSON file with everything that is stored for your account: profile, sign-in methods, keys, every request and its cost, credit
          history, files, webhooks, models and agents. Secrets such as keys and passwords are not included.
        </Text>
        {error && <Failure error={error} retry={run} />}
        <Group>
          <Button onClick={run} loading={progress !== null}>
            Download my data
          </Button>
          {progress !== null && (
            <Button variant="default" onClick={() => stop.current?.abort()}>
              Cancel
            </Button>
          )}
          <Text size="sm" c="dimmed" role="status">
            {progress === null
              ? outcome
              : `${COUNT.format(progress.items)} records exported: ${progress.section.toLowerCase().replaceAll("_", " ")}`}
          </Text>
        </Group>
      </Stack>
    </Card>
  );
}

const OBSTACLES: Readonly<Record<AccountDeletionObstacle, string>> = {
  OPERATOR: "This account is an operator of the gateway. Operator accounts cannot be deleted.",
  STALE_SESSION:
    "Your account has no password, so a recent sign-in with GitHub confirms your identity. Sign out, sign in with GitHub again, and return here within ten minutes.",
};

function Deletion({ me, preview }: { readonly me: Me; readonly preview: Preview }) {
  const [isOpen, { open, close }] = useDisclosure();
  const { obstacle } = preview;
  return (
    <Card title="Delete account">
      <Stack gap="sm">
        <Text maw="46rem" size="sm">
          Deleting your account is permanent. Download your data first if you want to keep it.
        </Text>
        <Stack gap={4}>
          <Text fw={600} size="sm">
            Deleted immediately
          </Text>
          <List size="sm" spacing={2}>
            {deletedItems(me, preview).map((text) => (
              <List.Item key={text}>{text}</List.Item>
            ))}
          </List>
        </Stack>
        <Stack gap={4}>
          <Text fw={600} size="sm">
            Kept for accounting
          </Text>
          <List size="sm" spacing={2}>
            {preview.keptUsageRecords > 0 && (
              <List.Item>
                {formatCount(preview.keptUsageRecords, "request", "requests")}: amounts, models and times, without your name and key names
              </List.Item>
            )}
            <List.Item>The credit ledger: amounts, and the notes of operators on grants</List.Item>
            <List.Item>Requests in progress: they are completed and charged</List.Item>
          </List>
        </Stack>
        {obstacle === null ? (
          <Group>
            <Button color="red" variant="light" onClick={open}>
              Delete account
            </Button>
          </Group>
        ) : (
          <Alert color="yellow" variant="light" title="This account cannot be deleted now">
            {OBSTACLES[obstacle]}
          </Alert>
        )}
        <Modal opened={isOpen} onClose={close} title="Delete account?" centered closeOnClickOutside={false}>
          <DeletionForm
            handle={me.handle}
            needsPassword={preview.proof === "PASSWORD"}
            credits={me.balance?.available ?? null}
            onCancel={close}
          />
        </Modal>
      </Stack>
    </Card>
  );
}

interface DeletionFormProps {
  readonly handle: string;
  readonly needsPassword: boolean;
  readonly credits: string | null;
  readonly onCancel: () => void;
}

function DeletionForm({ handle, needsPassword, credits, onCancel }: DeletionFormProps) {
  const [, remove] = useMutation(AccountDeleteDocument);
  const form = useServerForm(["confirmHandle", "password"]);
  const [isBusy, setBusy] = useState(false);
  const [confirmHandle, setConfirmHandle] = useState("");
  const [password, setPassword] = useState("");
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    const answer = await remove({ input: { confirmHandle, ...(needsPassword && { password }) } });
    if (form.accept(answer)) location.assign(`${BASE}/sign-in`);
    else setBusy(false);
  };
  return (
    <form onSubmit={submit} noValidate>
      <Stack>
        <Text>
          You lose your remaining <Credits value={credits} unit />, and programs that use your keys stop working within a second. This
          cannot be undone.
        </Text>
        {form.rest && <Failure error={form.rest} />}
        <TextInput
          label={
            <>
              Type your handle, <bdi>{handle}</bdi>, to confirm
            </>
          }
          {...form.text("confirmHandle", confirmHandle, setConfirmHandle)}
          autoComplete="off"
          spellCheck={false}
          data-autofocus
        />
        {needsPassword && (
          <PasswordInput label="Password" {...form.text("password", password, setPassword)} autoComplete="current-password" />
        )}
        <Group justify="flex-end">
          <Button variant="default" onClick={onCancel}>
            Cancel
          </Button>
          <Button type="submit" color="red" loading={isBusy}>
            Delete account
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function deletedItems({ balance }: Me, preview: Preview): string[] {
  const { apiKeys, communityModels, files, webhookEndpoints, sessions } = preview;
  return [
    ...(balance && balance.available !== "0" ? [`Your ${formatCredits(balance.available)} credits`] : []),
    ...(apiKeys > 0 ? [`${formatCount(apiKeys, "key", "keys")}, including the keys of authorized apps`] : []),
    ...(communityModels > 0
      ? [`${formatCount(communityModels, "model or agent", "models and agents")}: other users' calls will fail`]
      : []),
    ...(files > 0 ? [`${formatCount(files, "file", "files")}: links to them will break`] : []),
    ...(webhookEndpoints > 0 ? [`${formatCount(webhookEndpoints, "webhook endpoint", "webhook endpoints")} and all deliveries`] : []),
    `${formatCount(sessions, "session", "sessions")}, including this one`,
    "Integrations",
  ];
}
