/** One account, and what an operator does with it. */
import { Badge, Button, Group, Select, SimpleGrid, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { useMutation, useQuery } from "urql";
import {
  OperatorAccountDocument,
  type OperatorAccountPartsFragment,
  OperatorSetOperatorDocument,
  OperatorSetPublisherDocument,
  OperatorSetTierDocument,
  OperatorTiersDocument,
} from "../../client/generated/graphql.js";
import { Confirm } from "../../ui/confirm.js";
import { Copyable } from "../../ui/copy.js";
import { Credits } from "../../ui/credits.js";
import { DetailView } from "../../ui/detail-view.js";
import { Fact, Facts } from "../../ui/facts.js";
import { Figure } from "../../ui/figure.js";
import { Card } from "../../ui/page.js";
import { When } from "../../ui/when.js";
import { Grant, Grants } from "./grants.js";
import { ACCOUNTS, OPERATOR, OperatorPage } from "./parts.js";
import { usePolled } from "./polled.js";

/** Nobody tells an operator of other accounts' balances: they are asked for. */
const POLL_MS = 5_000;
const ABOVE = [
  { label: "Operator", to: OPERATOR },
  { label: "Accounts", to: ACCOUNTS },
];

type Account = OperatorAccountPartsFragment;

export function OneAccount({ id }: { readonly id: string }) {
  const answer = usePolled(OperatorAccountDocument, { id }, POLL_MS);
  return (
    <DetailView answer={answer} name="account" above={ABOVE} why="It may have been deleted." all="All accounts" Frame={OperatorPage}>
      {({ account }) => account && <AccountDetails account={account} />}
    </DetailView>
  );
}

function AccountDetails({ account }: { readonly account: Account }) {
  const { balance } = account;
  return (
    <OperatorPage title={<bdi>{account.handle}</bdi>} tabTitle={account.handle} above={ABOVE} actions={<Grant account={account} />}>
      <SimpleGrid cols={{ base: 2, md: 5 }} spacing="md">
        <Figure
          label="Balance"
          value={
            <span data-balance={balance?.available}>
              <Credits value={balance?.available} />
            </span>
          }
        >
          of all buckets
        </Figure>
        <Figure label="Free" value={<Credits value={balance?.tier} />}>
          {account.nextResetAt ? (
            <>
              refilled <When value={account.nextResetAt} />
            </>
          ) : (
            "not refilled"
          )}
        </Figure>
        <Figure label="Bought with crypto" value={<Credits value={balance?.crypto} />} />
        <Figure label="Bought" value={<Credits value={balance?.pack} />} />
        <Figure label="Set aside" value={<Credits value={balance?.held} />}>
          for what is being made
        </Figure>
      </SimpleGrid>
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <Card title="Who it is">
          <Facts>
            <Fact label="Name">
              <bdi>{account.name ?? "–"}</bdi>
            </Fact>
            <Fact label="E-mail">
              {account.email ?? "–"}
              {account.email !== null && (
                <Text size="xs" c="dimmed">
                  {account.isEmailVerified ? "verified" : "not verified"}
                </Text>
              )}
            </Fact>
            <Fact label="GitHub">
              <bdi>{account.githubUsername ?? "–"}</bdi>
            </Fact>
            <Fact label="Made">
              <When value={account.createdAt} />
            </Fact>
            <Fact label="Id">
              <Copyable value={account.restId} label="the id" />
            </Fact>
          </Facts>
        </Card>
        <Card title="What it may">
          <Stack>
            <Tier account={account} />
            <Publisher account={account} />
            <Operates account={account} />
          </Stack>
        </Card>
      </SimpleGrid>
      <Grants accountId={account.id} />
    </OperatorPage>
  );
}

function Tier({ account: { id, handle, tier } }: { readonly account: Account }) {
  const [{ data }] = useQuery({ query: OperatorTiersDocument });
  const [, setTier] = useMutation(OperatorSetTierDocument);
  const [chosen, setChosen] = useState<string>();
  const tiers = data?.gateway?.tiers ?? [];
  const names = tier === null || tiers.includes(tier) ? tiers : [tier, ...tiers];
  const wanted = chosen ?? tier ?? "";
  const isChanged = wanted !== (tier ?? "");
  return (
    <Group align="flex-end" gap="xs">
      <Select
        label="Tier"
        description={
          tiers.length === 0 ? "The gateway's configuration has no tiers." : "Its free credits are filled up to the new tier's at once."
        }
        data={[{ value: "", label: "none" }, ...names.map((name) => ({ value: name, label: name }))]}
        value={wanted}
        onChange={(value) => setChosen(value ?? "")}
        allowDeselect={false}
        disabled={tiers.length === 0 && tier === null}
        style={{ flex: "1 1 12rem" }}
      />
      <Confirm
        title="Set the tier?"
        action="Set the tier"
        color="blue"
        onConfirm={async () => {
          const { error } = await setTier({ input: { accountId: id, tier: wanted === "" ? null : wanted } });
          if (!error) setChosen(undefined);
          return error;
        }}
        trigger={(open) => (
          <Button variant="default" disabled={!isChanged} onClick={open}>
            Set the tier
          </Button>
        )}
      >
        <Text>
          <bdi>{handle}</bdi> has {tier === null ? "no tier" : `the tier ${tier}`} and is given{" "}
          {wanted === "" ? "none" : `the tier ${wanted}`}. What its free bucket holds stays until the next refill.
        </Text>
      </Confirm>
    </Group>
  );
}

function Publisher({ account: { id, handle, isPublisher, isOperator } }: { readonly account: Account }) {
  const [, setPublisher] = useMutation(OperatorSetPublisherDocument);
  return (
    <Group justify="space-between" gap="xs">
      <div>
        <Text size="sm" fw={500}>
          Publishing{" "}
          <Badge size="sm" variant="light" color={isPublisher ? "green" : "gray"}>
            {isPublisher ? "allowed" : "not allowed"}
          </Badge>
        </Text>
        <Text size="sm" c="dimmed">
          {isOperator ? "Operators may always publish models and agents for everybody." : "Models and agents that everybody may call."}
        </Text>
      </div>
      {!isOperator && (
        <Confirm
          key={String(isPublisher)}
          title={isPublisher ? `Stop ${handle} from publishing?` : `Let ${handle} publish?`}
          action={isPublisher ? "Stop it" : "Let it publish"}
          color={isPublisher ? "red" : "blue"}
          onConfirm={async () => (await setPublisher({ input: { accountId: id, isPublisher: !isPublisher } })).error}
          trigger={(open) => (
            <Button variant="default" size="xs" onClick={open}>
              {isPublisher ? "Stop from publishing" : "Let it publish"}
            </Button>
          )}
        >
          <Text>
            {isPublisher
              ? "It makes no more models or agents public. Those that are public stay so."
              : "It may make its models and agents callable by everybody, and earns what they are charged."}
          </Text>
        </Confirm>
      )}
    </Group>
  );
}

function Operates({ account: { id, handle, isOperator } }: { readonly account: Account }) {
  const [, setOperator] = useMutation(OperatorSetOperatorDocument);
  return (
    <Group justify="space-between" gap="xs">
      <div>
        <Text size="sm" fw={500}>
          Operating{" "}
          <Badge size="sm" variant="light" color={isOperator ? "green" : "gray"}>
            {isOperator ? "allowed" : "not allowed"}
          </Badge>
        </Text>
        <Text size="sm" c="dimmed">
          To see these pages, and to do what can be done on them.
        </Text>
      </div>
      <Confirm
        key={String(isOperator)}
        title={isOperator ? `Stop ${handle} from operating?` : `Let ${handle} operate the gateway?`}
        action={isOperator ? "Stop it" : "Let it operate"}
        color={isOperator ? "red" : "blue"}
        onConfirm={async () => (await setOperator({ input: { accountId: id, isOperator: !isOperator } })).error}
        trigger={(open) => (
          <Button variant="default" size="xs" onClick={open}>
            {isOperator ? "Stop from operating" : "Let it operate"}
          </Button>
        )}
      >
        <Text>
          {isOperator
            ? "At once it sees no account but its own, and grants nothing. The last operator cannot be stopped."
            : "At once it may see every account, grant credits, set tiers, and make others operators."}
        </Text>
      </Confirm>
    </Group>
  );
}
