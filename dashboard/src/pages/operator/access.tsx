/** Access of an account: suspend and restore it, end its sessions, and make a link for a forgotten password. */
import { Alert, Badge, Button, Group, Modal, Stack, Text, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useState } from "react";
import { type CombinedError, useMutation } from "urql";
import {
  type OperatorAccountPartsFragment,
  OperatorEndSessionsDocument,
  OperatorPasswordLinkDocument,
  type OperatorPasswordLinkMutation,
  OperatorRestoreDocument,
  OperatorSuspendDocument,
} from "../../client/generated/graphql.js";
import { Confirm } from "../../ui/confirm.js";
import { Copyable } from "../../ui/copy.js";
import { secretModal } from "../../ui/secret-modal.js";
import { Failure } from "../../ui/states.js";
import { When } from "../../ui/when.js";
import { REASON_CHARS_MAX } from "./parts.js";

type Account = OperatorAccountPartsFragment;
type Link = NonNullable<OperatorPasswordLinkMutation["createPasswordLink"]>;

interface AccessProps {
  readonly account: Account;
  readonly onChange: () => void;
}

export function Access(props: AccessProps) {
  return (
    <>
      <Suspension {...props} />
      <Sessions {...props} />
      <PasswordLink {...props} />
    </>
  );
}

function Suspension({ account: { restId, handle, suspendedAt, suspensionReason }, onChange }: AccessProps) {
  const [, suspend] = useMutation(OperatorSuspendDocument);
  const [, restore] = useMutation(OperatorRestoreDocument);
  const [reason, setReason] = useState("");
  const isSuspended = suspendedAt !== null;
  const change = () => {
    const input = { accountId: restId };
    const given = reason.trim() !== "" && { reason: reason.trim() };
    return isSuspended ? restore({ input: { ...input, ...given } }) : suspend({ input: { ...input, reason: reason.trim() } });
  };
  return (
    <Group justify="space-between" gap="xs">
      <div style={{ flex: "1 1 12rem" }}>
        <Text size="sm" fw={500}>
          Status{" "}
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
          if (!error) {
            setReason("");
            onChange();
          }
          return error;
        }}
        trigger={(open) => (
          <Button variant="default" size="xs" onClick={open}>
            {isSuspended ? "Restore account" : "Suspend account"}
          </Button>
        )}
      >
        <Stack>
          <Text>
            {isSuspended
              ? "API keys and sessions are accepted again. Sessions that were ended stay signed out."
              : "API keys and sessions are refused immediately. Running generations end, and the delivered part is charged. You can restore the account later."}
          </Text>
          <TextInput
            label="Reason"
            description={isSuspended ? "Optional. Kept in the audit log." : "Shown to operators and kept in the audit log."}
            value={reason}
            maxLength={REASON_CHARS_MAX}
            onChange={(event) => setReason(event.currentTarget.value)}
            required={!isSuspended}
          />
        </Stack>
      </Confirm>
    </Group>
  );
}

function Sessions({ account: { restId, handle }, onChange }: AccessProps) {
  const [{ data }, endSessions] = useMutation(OperatorEndSessionsDocument);
  const ended = data?.endSessions?.ended;
  return (
    <Group justify="space-between" gap="xs">
      <div style={{ flex: "1 1 12rem" }}>
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
        onConfirm={async () => {
          const { error } = await endSessions({ input: { accountId: restId } });
          if (!error) onChange();
          return error;
        }}
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

/** The link is shown once, in a dialog that only its button closes. */
function PasswordLink({ account: { restId, handle, email }, onChange }: AccessProps) {
  const [{ fetching }, createLink] = useMutation(OperatorPasswordLinkDocument);
  const [isOpen, { open, close }] = useDisclosure();
  const [link, setLink] = useState<Link | null>(null);
  const [error, setError] = useState<CombinedError>();
  const create = async () => {
    const answer = await createLink({ input: { accountId: restId } });
    setError(answer.error);
    if (!answer.data?.createPasswordLink) return;
    setLink(answer.data.createPasswordLink);
    onChange();
  };
  return (
    <Group justify="space-between" gap="xs">
      <div style={{ flex: "1 1 12rem" }}>
        <Text size="sm" fw={500}>
          Password
        </Text>
        <Text size="sm" c="dimmed">
          {email === null ? "The account has no e-mail address to sign in with." : "For an owner who forgot the password."}
        </Text>
      </div>
      {email !== null && (
        <Button
          variant="default"
          size="xs"
          onClick={() => {
            setLink(null);
            setError(undefined);
            open();
          }}
        >
          Create password link
        </Button>
      )}
      <Modal
        opened={isOpen}
        onClose={close}
        title={link ? "Password link created" : `Create a password link for ${handle}?`}
        centered
        {...secretModal(link !== null)}
      >
        {link ? (
          <Stack>
            <Alert color="yellow" variant="light" title="Copy this link now. You won’t be able to see it again." role="status">
              Send it to <bdi>{email}</bdi>. Anyone who has the link can set a new password once, until <When value={link.expiresAt} />.
            </Alert>
            <div className="card">
              <Copyable value={link.url} label="password link" />
            </div>
            <Group justify="flex-end">
              <Button onClick={close}>Done</Button>
            </Group>
          </Stack>
        ) : (
          <Stack>
            <Text>
              The link sets a new password once, within 24 hours. Using it signs out all browsers of the account. It replaces an earlier
              link.
            </Text>
            {error && <Failure error={error} />}
            <Group justify="flex-end">
              <Button variant="default" onClick={close}>
                Cancel
              </Button>
              <Button loading={fetching} onClick={create}>
                Create link
              </Button>
            </Group>
          </Stack>
        )}
      </Modal>
    </Group>
  );
}
