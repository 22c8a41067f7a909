import { Badge, Button, Group, Stack, Text } from "@mantine/core";
import { useMutation } from "urql";
import { useAnswer } from "../../client/answer.js";
import {
  AccountRevokeOtherSessionsDocument,
  AccountRevokeSessionDocument,
  AccountSessionsDocument,
  type AccountSessionsQuery,
} from "../../client/generated/graphql.js";
import { formatCount } from "../../ui/amounts.js";
import { Confirm } from "../../ui/confirm.js";
import { Card } from "../../ui/page.js";
import { Loading, QueryView } from "../../ui/states.js";
import { toast } from "../../ui/toast.js";
import { When } from "../../ui/when.js";

type Session = NonNullable<NonNullable<AccountSessionsQuery["me"]>["sessions"]>["nodes"][number];

export function Sessions() {
  const answer = useAnswer({ query: AccountSessionsDocument, requestPolicy: "cache-and-network" });
  const sessions = answer.data?.me?.sessions?.nodes ?? [];
  const others = sessions.filter(({ isCurrent }) => !isCurrent).length;
  return (
    <Card title="Active sessions" actions={others > 0 && <EndOthers count={others} />}>
      <QueryView answer={answer} loading={<Loading rows={3} height={44} />}>
        {() => (
          <Stack gap={0} component="ul" p={0} m={0} style={{ listStyle: "none" }}>
            {sessions.map((session) => (
              <SessionRow key={session.id} session={session} />
            ))}
          </Stack>
        )}
      </QueryView>
    </Card>
  );
}

function SessionRow({ session }: { readonly session: Session }) {
  const [, revoke] = useMutation(AccountRevokeSessionDocument);
  const name = describeBrowser(session.userAgent);
  return (
    <Group
      component="li"
      justify="space-between"
      wrap="nowrap"
      py="sm"
      style={{ borderTop: "1px solid var(--line)" }}
      data-session={session.restId}
    >
      <Stack gap={0} style={{ minWidth: 0 }}>
        <Group gap="xs">
          <Text fw={600} title={session.userAgent ?? undefined} className="any-wrap">
            {name}
          </Text>
          {session.isCurrent && (
            <Badge size="sm" variant="light" color="green">
              This browser
            </Badge>
          )}
        </Group>
        <Text size="sm" c="dimmed" className="any-wrap">
          {session.ipAddress ?? "Unknown address"}, signed in <When value={session.createdAt} />, expires <When value={session.expiresAt} />
        </Text>
      </Stack>
      {!session.isCurrent && (
        <Confirm
          title="Sign out this browser?"
          action="Sign out"
          onConfirm={async () => (await revoke({ input: { id: session.id } })).error}
          trigger={(open) => (
            <Button variant="default" size="xs" onClick={open} aria-label={`Sign out ${name}`} style={{ flex: "none" }}>
              Sign out
            </Button>
          )}
        >
          <Text>
            {name} at {session.ipAddress ?? "an unknown address"} will have to sign in again.
          </Text>
        </Confirm>
      )}
    </Group>
  );
}

function EndOthers({ count }: { readonly count: number }) {
  const [, revokeOthers] = useMutation(AccountRevokeOtherSessionsDocument);
  const browsers = count === 1 ? "the other browser" : `${count} other browsers`;
  return (
    <Confirm
      title={`Sign out ${browsers}?`}
      action="Sign out everywhere else"
      onConfirm={async () => {
        const { data, error } = await revokeOthers({ input: {} });
        if (!error) toast({ message: `${formatCount(data?.revokeOtherSessions?.ended ?? 0, "session", "sessions")} signed out.` });
        return error;
      }}
      trigger={(open) => (
        <Button variant="default" size="xs" onClick={open}>
          Sign out everywhere else
        </Button>
      )}
    >
      <Text>You stay signed in here. If you do not recognize a session, change your password as well.</Text>
    </Confirm>
  );
}

const BROWSERS: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/\bEdg\//, "Edge"],
  [/\bOPR\//, "Opera"],
  [/\bFirefox\//, "Firefox"],
  [/\b(?:HeadlessChrome|Chrome|CriOS)\//, "Chrome"],
  [/\bSafari\//, "Safari"],
];
const SYSTEMS: readonly (readonly [pattern: RegExp, name: string])[] = [
  [/\b(?:iPhone|iPad)\b/, "iOS"],
  [/\bAndroid\b/, "Android"],
  [/\bWindows\b/, "Windows"],
  [/\bMac OS X\b/, "macOS"],
  [/\bLinux\b/, "Linux"],
];

function describeBrowser(userAgent: string | null): string {
  if (userAgent === null || userAgent === "") return "Unknown browser";
  const nameIn = (names: typeof BROWSERS) => names.find(([pattern]) => pattern.test(userAgent))?.[1];
  const [browser, system] = [nameIn(BROWSERS), nameIn(SYSTEMS)];
  if (browser === undefined) return userAgent.length > 60 ? `${userAgent.slice(0, 60)}…` : userAgent;
  return system === undefined ? browser : `${browser} on ${system}`;
}
