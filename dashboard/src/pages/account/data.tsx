/** Taking everything away, and deleting the account. */
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
      setOutcome(file ? "Your data is in the file that your browser has saved." : "Stopped. Nothing was saved.");
    } catch (met) {
      setError(
        met instanceof CombinedError ? met : new CombinedError({ networkError: met instanceof Error ? met : new Error(String(met)) }),
      );
    }
    stop.current = null;
    setProgress(null);
  };
  return (
    <Card title="Download my data">
      <Stack gap="sm">
        <Text maw="46rem" size="sm">
          One JSON file with all that is kept of your account: profile, sign-ins, keys, every request with what it cost, credits that came
          and went, files, webhooks, models and agents. Secrets are not in it: no key, no password.
        </Text>
        {error && <Failure error={error} retry={run} />}
        <Group>
          <Button onClick={run} loading={progress !== null}>
            Download my data
          </Button>
          {progress !== null && (
            <Button variant="default" onClick={() => stop.current?.abort()}>
              Stop
            </Button>
          )}
          <Text size="sm" c="dimmed" role="status">
            {progress === null
              ? outcome
              : `${COUNT.format(progress.items)} records so far: ${progress.section.toLowerCase().replaceAll("_", " ")}`}
          </Text>
        </Group>
      </Stack>
    </Card>
  );
}

const OBSTACLES: Readonly<Record<AccountDeletionObstacle, string>> = {
  OPERATOR: "This is an operator's account: the gateway is run with it, and it stays.",
  STALE_SESSION:
    "Your account has no password, so signing in with GitHub is what shows that it is you. Sign out, sign in with GitHub again, and come back within ten minutes.",
};

function Deletion({ me, preview }: { readonly me: Me; readonly preview: Preview }) {
  const [isOpen, { open, close }] = useDisclosure();
  const { obstacle } = preview;
  return (
    <Card title="Delete the account">
      <Stack gap="sm">
        <Text maw="46rem" size="sm">
          Nothing brings a deleted account back. Download your data first if you may want it.
        </Text>
        <Stack gap={4}>
          <Text fw={600} size="sm">
            Ends at once
          </Text>
          <List size="sm" spacing={2}>
            {endsOf(me, preview).map((text) => (
              <List.Item key={text}>{text}</List.Item>
            ))}
          </List>
        </Stack>
        <Stack gap={4}>
          <Text fw={600} size="sm">
            Stays, for the books
          </Text>
          <List size="sm" spacing={2}>
            {preview.keptUsageRecords > 0 && (
              <List.Item>
                {formatCount(preview.keptUsageRecords, "request", "requests")}: amounts, models and times, without your name and those of
                your keys
              </List.Item>
            )}
            <List.Item>The ledger of credits: amounts, and what an operator has written beside a grant</List.Item>
            <List.Item>What is under way is finished and charged as ever</List.Item>
          </List>
        </Stack>
        {obstacle === null ? (
          <Group>
            <Button color="red" variant="light" onClick={open}>
              Delete the account
            </Button>
          </Group>
        ) : (
          <Alert color="yellow" variant="light" title="It cannot be deleted now">
            {OBSTACLES[obstacle]}
          </Alert>
        )}
        <Modal opened={isOpen} onClose={close} title="Delete the account for ever?" centered closeOnClickOutside={false}>
          <DeletionForm
            handle={me.handle}
            isPasswordAsked={preview.proof === "PASSWORD"}
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
  readonly isPasswordAsked: boolean;
  readonly credits: string | null;
  readonly onCancel: () => void;
}

function DeletionForm({ handle, isPasswordAsked, credits, onCancel }: DeletionFormProps) {
  const [, remove] = useMutation(AccountDeleteDocument);
  const form = useServerForm(["confirmHandle", "password"]);
  const [isBusy, setBusy] = useState(false);
  const [confirmHandle, setConfirmHandle] = useState("");
  const [password, setPassword] = useState("");
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    const answer = await remove({ input: { confirmHandle, ...(isPasswordAsked && { password }) } });
    if (form.accept(answer)) location.assign(`${BASE}/sign-in`);
    else setBusy(false);
  };
  return (
    <form onSubmit={submit} noValidate>
      <Stack>
        <Text>
          Your remaining <Credits value={credits} unit /> are forfeited, and whatever uses your keys stops working within a second.
        </Text>
        {form.rest && <Failure error={form.rest} />}
        <TextInput
          label={
            <>
              Type your handle, <bdi>{handle}</bdi>
            </>
          }
          {...form.text("confirmHandle", confirmHandle, setConfirmHandle)}
          autoComplete="off"
          spellCheck={false}
          data-autofocus
        />
        {isPasswordAsked && (
          <PasswordInput label="Password" {...form.text("password", password, setPassword)} autoComplete="current-password" />
        )}
        <Group justify="flex-end">
          <Button variant="default" onClick={onCancel}>
            Cancel
          </Button>
          <Button type="submit" color="red" loading={isBusy}>
            Delete the account
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** What there is none of is not named. */
function endsOf({ balance }: Me, preview: Preview): string[] {
  const { apiKeys, communityModels, files, webhookEndpoints, sessions } = preview;
  return [
    ...(balance && balance.available !== "0" ? [`Your ${formatCredits(balance.available)} credits, which are forfeited`] : []),
    ...(apiKeys > 0 ? [`${formatCount(apiKeys, "key", "keys")}, those of apps that act for you included`] : []),
    ...(communityModels > 0
      ? [`${formatCount(communityModels, "model or agent", "models and agents")}, for everybody who calls them`]
      : []),
    ...(files > 0 ? [`${formatCount(files, "file", "files")}, whoever has a link to them`] : []),
    ...(webhookEndpoints > 0
      ? [`${formatCount(webhookEndpoints, "webhook endpoint", "webhook endpoints")}, with what they were sent`]
      : []),
    `${formatCount(sessions, "session", "sessions")}, this one included`,
    "Connected apps",
  ];
}
