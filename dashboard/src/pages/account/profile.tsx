/** Profile, sign-in methods and low-balance alert. */
import { Anchor, Avatar, Badge, Button, Group, PasswordInput, SimpleGrid, Stack, Text, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { useMutation } from "urql";
import { useAnswer } from "../../client/answer.js";
import {
  AccountChangePasswordDocument,
  AccountProfileDocument,
  type AccountProfileQuery,
  AccountSetThresholdDocument,
  AccountUpdateProfileDocument,
} from "../../client/generated/graphql.js";
import { Copyable } from "../../ui/copy.js";
import { Fact, Facts } from "../../ui/facts.js";
import { Card } from "../../ui/page.js";
import { useServerForm } from "../../ui/server-form.js";
import { Failure, Loading, QueryView } from "../../ui/states.js";
import { toast } from "../../ui/toast.js";
import { When } from "../../ui/when.js";

type Me = NonNullable<AccountProfileQuery["me"]>;

export function Profile() {
  const answer = useAnswer({ query: AccountProfileDocument });
  return (
    <QueryView answer={answer} loading={<Loading rows={3} height={140} />}>
      {({ me }) =>
        me && (
          <SimpleGrid cols={{ base: 1, lg: 2 }} style={{ alignItems: "start" }}>
            <Stack>
              <Card title="Profile">
                <ProfileForm me={me} />
              </Card>
              <Card title="Account">
                <Facts>
                  <Fact label="ID">
                    <Copyable value={me.restId} label="account ID" />
                  </Fact>
                  <Fact label="Tier">{me.tier ?? "None"}</Fact>
                  <Fact label="Created">
                    <When value={me.createdAt} />
                  </Fact>
                </Facts>
              </Card>
            </Stack>
            <Stack>
              <Card title="Sign-in">
                <SignIn me={me} />
              </Card>
              <Card title="Low balance alert">
                <LowBalance me={me} onChanged={answer.refetch} />
              </Card>
            </Stack>
          </SimpleGrid>
        )
      }
    </QueryView>
  );
}

/** Sends edited fields only, because another tab may have changed the others meanwhile. */
function ProfileForm({ me }: { readonly me: Me }) {
  const [{ fetching }, update] = useMutation(AccountUpdateProfileDocument);
  const form = useServerForm(["name", "handle", "image"]);
  const [name, setName] = useState<string>();
  const [handle, setHandle] = useState<string>();
  const [image, setImage] = useState<string>();
  const models = me.communityModels?.totalCount ?? 0;
  const isEdited = name !== undefined || handle !== undefined || image !== undefined;
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const answer = await update({
      input: {
        ...(name !== undefined && { name: name.trim() === "" ? null : name }),
        ...(handle !== undefined && { handle }),
        ...(image !== undefined && { image: image.trim() === "" ? null : image }),
      },
    });
    if (!form.accept(answer)) return;
    setName(undefined);
    setHandle(undefined);
    setImage(undefined);
    toast({ message: "Profile saved." });
  };
  return (
    <form onSubmit={submit} noValidate>
      <Stack>
        {form.rest && <Failure error={form.rest} />}
        <Group wrap="nowrap" align="center">
          <Avatar size={56} src={me.image} alt="" />
          <Stack gap={0} style={{ minWidth: 0 }}>
            <Text fw={600} lineClamp={2} className="any-wrap">
              <bdi>{me.name ?? me.handle}</bdi>
            </Text>
            <Text size="sm" c="dimmed" className="any-wrap">
              <bdi>{me.email}</bdi>
            </Text>
          </Stack>
        </Group>
        <TextInput label="Name" {...form.text("name", name ?? me.name ?? "", setName)} autoComplete="name" />
        <TextInput
          label="Handle"
          description={
            models === 0
              ? "Part of the IDs of your models: community/handle/name."
              : `Part of the ${models === 1 ? "ID of your model" : `IDs of your ${models} models`}. Requests with the old handle fail after a change.`
          }
          {...form.text("handle", handle ?? me.handle, setHandle)}
          autoComplete="off"
          spellCheck={false}
        />
        <TextInput
          label="Picture URL"
          description="An https URL. Leave empty for no picture."
          type="url"
          {...form.text("image", image ?? me.image ?? "", setImage)}
          autoComplete="off"
        />
        <Group justify="flex-end">
          <Button type="submit" loading={fetching} disabled={!isEdited}>
            Save profile
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function SignIn({ me }: { readonly me: Me }) {
  const hasPassword = me.deletionPreview?.proof === "PASSWORD";
  return (
    <Stack>
      <Facts>
        <Fact label="E-mail">
          <Group gap="xs">
            <bdi>{me.email ?? "None"}</bdi>
            {me.isEmailVerified && (
              <Badge size="sm" color="green" variant="light">
                Verified
              </Badge>
            )}
          </Group>
        </Fact>
        <Fact label="Password">{hasPassword ? "Set" : "Not set: you sign in with GitHub"}</Fact>
        <Fact label="GitHub">
          {me.githubUsername === null ? (
            "Not linked"
          ) : (
            <Anchor href={`https://github.com/${encodeURIComponent(me.githubUsername)}`} target="_blank" rel="noreferrer">
              <bdi>{me.githubUsername}</bdi>
            </Anchor>
          )}
        </Fact>
      </Facts>
      {hasPassword && <PasswordForm />}
    </Stack>
  );
}

function PasswordForm() {
  const [{ fetching }, change] = useMutation(AccountChangePasswordDocument);
  const form = useServerForm(["currentPassword", "newPassword"]);
  const [currentPassword, setCurrent] = useState("");
  const [newPassword, setNew] = useState("");
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const answer = await change({ input: { currentPassword, newPassword } });
    if (!form.accept(answer)) return;
    setCurrent("");
    setNew("");
    toast({ message: "Password changed. All other sessions have been signed out." });
  };
  return (
    <form onSubmit={submit} noValidate>
      <Stack gap="sm">
        {form.rest && <Failure error={form.rest} />}
        <PasswordInput
          label="Current password"
          {...form.text("currentPassword", currentPassword, setCurrent)}
          autoComplete="current-password"
        />
        <PasswordInput
          label="New password"
          description="Changing it signs you out everywhere else."
          {...form.text("newPassword", newPassword, setNew)}
          autoComplete="new-password"
        />
        <Group justify="flex-end">
          <Button type="submit" variant="default" loading={fetching} disabled={currentPassword === "" || newPassword === ""}>
            Change password
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

function LowBalance({ me: { lowBalance }, onChanged }: { readonly me: Me; readonly onChanged: () => void }) {
  const [{ fetching }, set] = useMutation(AccountSetThresholdDocument);
  const form = useServerForm(["threshold"]);
  const [typed, setTyped] = useState<string>();
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const answer = await set({ input: { threshold: typed?.trim() || null } });
    if (!form.accept(answer)) return;
    setTyped(undefined);
    onChanged();
    toast({ message: !typed?.trim() ? "Alert turned off." : `You get an alert below ${typed.trim()} credits.` });
  };
  return (
    <form onSubmit={submit} noValidate>
      <Stack gap="sm">
        {form.rest && <Failure error={form.rest} />}
        <TextInput
          label="Alert threshold"
          description="In credits. You get an alert here and through the webhook balance.low, once each time your balance falls below it. Leave empty for no alert."
          {...form.text("threshold", typed ?? lowBalance?.threshold ?? "", setTyped)}
          inputMode="decimal"
          autoComplete="off"
        />
        {lowBalance?.since && (
          <Text size="sm" c="orange" role="status">
            Your balance fell below the threshold <When value={lowBalance.since} />.
          </Text>
        )}
        <Group justify="flex-end">
          <Button type="submit" variant="default" loading={fetching} disabled={typed === undefined}>
            Save alert
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
