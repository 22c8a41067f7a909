/** Access of an account: suspend and restore it, end its sessions, and make a link for a forgotten password. */
import { Badge, Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { useState } from "react";
import { useMutation } from "urql";
import {
  type OperatorAccountPartsFragment,
  OperatorEndSessionsDocument,
  OperatorPasswordLinkDocument,
  OperatorRestoreDocument,
  OperatorSuspendDocument,
} from "../../client/generated/graphql.js";
import { Confirm } from "../../ui/confirm.js";
import { Copyable } from "../../ui/copy.js";
import { When } from "../../ui/when.js";

type Account = OperatorAccountPartsFragment;

export function Access({ account }: { readonly account: Account }) {
  return (
    <>
      <Suspension account={account} />
      <Sessions account={account} />
      <PasswordLink account={account} />
    </>
  );
}

function Suspension({ account: { restId, handle, suspendedAt, suspensionReason } }: { readonly account: Account }) {
  const [, suspend] = useMutation(OperatorSuspendDocument);
  const [, restore] = useMutation(OperatorRestoreDocument);
  const [reason, setReason] = useState("");
  const isSuspended = suspendedAt !== null;
  const change = () => {
    const input = { accountId: restId };
    return isSuspended ? restore({ input }) : suspend({ input: { ...input, reason: reason.trim() } });
  };
  return (
    <Group justify="space-between" gap="xs">
      <div>
        <Text size="sm" fw={500}>
          Access{" "}
          <Badge size="sm" variant="light" color={isSuspended ? "red" : "green"}>
            {isSuspended ? "Suspended" : "Active"}
          </Badge>
        </Text>
        <Text size="sm" c="dimmed" className="any-wrap">
          {isSuspended ? (
            <>
              Since <When value={suspendedAt} />: {suspensionReason}
            </>
          ) : (
            "API keys and sessions are accepted."
          )}
        </Text>
      </div>
      <Confirm
        key={String(isSuspended)}
        title={isSuspended ? `Restore ${handle}?` : `Suspend ${handle}?`}
        action={isSuspended ? "Restore account" : "Suspend account"}
        color={isSuspended ? "blue" : "red"}
        isDisabled={!isSuspended && reason.trim() === ""}
        onConfirm={async () => {
          const { error } = await change();
          if (!error) setReason("");
          return error;
        }}
        trigger={(open) => (
          <Button variant="default" size="xs" onClick={open}>
            {isSuspended ? "Restore account" : "Suspend account"}
          </Button>
        )}
      >
        {isSuspended ? (
          <Text>The account's API keys and sessions work again.</Text>
        ) : (
          <Stack>
            <Text>
              API keys and sessions stop working immediately. Running generations end and are charged for the delivered part. You can
              restore the account later.
            </Text>
            <TextInput
              label="Reason"
              description="Shown to operators and kept in the audit log."
              value={reason}
              maxLength={500}
              onChange={(event) => setReason(event.currentTarget.value)}
              required
            />
          </Stack>
        )}
      </Confirm>
    </Group>
  );
}

function Sessions({ account: { restId, handle } }: { readonly account: Account }) {
  const [{ data }, endSessions] = useMutation(OperatorEndSessionsDocument);
  const ended = data?.endSessions?.ended;
  return (
    <Group justify="space-between" gap="xs">
      <div>
        <Text size="sm" fw={500}>
          Sessions
        </Text>
        <Text size="sm" c="dimmed" role="status">
          {ended === undefined ? "Signed-in browsers. API keys are not affected." : `Sessions ended: ${ended}.`}
        </Text>
      </div>
      <Confirm
        title={`End all sessions of ${handle}?`}
        action="End sessions"
        onConfirm={async () => (await endSessions({ input: { accountId: restId } })).error}
        trigger={(open) => (
          <Button variant="default" size="xs" onClick={open}>
            End sessions
          </Button>
        )}
      >
        <Text>All browsers are signed out. API keys continue to work.</Text>
      </Confirm>
    </Group>
  );
}

function PasswordLink({ account: { restId, handle, email } }: { readonly account: Account }) {
  const [{ data }, createLink] = useMutation(OperatorPasswordLinkDocument);
  const link = data?.createPasswordLink;
  return (
    <Group justify="space-between" gap="xs">
      <div style={{ minWidth: 0 }}>
        <Text size="sm" fw={500}>
          Password
        </Text>
        {link ? (
          <>
            <Copyable value={link.url} label="password link" />
            <Text size="sm" c="dimmed" role="status">
              Shown once. Send it to the owner: it works once, until <When value={link.expiresAt} />.
            </Text>
          </>
        ) : (
          <Text size="sm" c="dimmed">
            {email === null
              ? "The account has no e-mail address to sign in with."
              : "A link to set a new password, for an owner who forgot it."}
          </Text>
        )}
      </div>
      {email !== null && (
        <Confirm
          title={`Create a password link for ${handle}?`}
          action="Create link"
          color="blue"
          onConfirm={async () => (await createLink({ input: { accountId: restId } })).error}
          trigger={(open) => (
            <Button variant="default" size="xs" onClick={open}>
              Create password link
            </Button>
          )}
        >
          <Text>The link sets a new password once, within 24 hours, and ends all sessions. It replaces an earlier link.</Text>
        </Confirm>
      )}
    </Group>
  );
}
