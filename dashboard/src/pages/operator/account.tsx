/** One account, with the actions of an operator. */
import { Badge, Button, Group, Select, SimpleGrid, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { useSearchParams } from "react-router";
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
import { Access } from "./access.js";
import { AccountAudit } from "./account-audit.js";
import { AccountKeys } from "./account-keys.js";
import { AccountLedger } from "./account-ledger.js";
import { AccountUsage } from "./account-usage.js";
import { Grant } from "./grants.js";
import { AccountLimits } from "./limits.js";
import { ACCOUNTS, OPERATOR, OperatorPage } from "./parts.js";
import { usePolled } from "./polled.js";
import { TakeBack } from "./take-back.js";

/** No subscription reports other accounts' balances. */
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
  const [query] = useSearchParams();
  // The ledger and the audit log are read again after each act.
  const [changedAt, setChangedAt] = useState(0);
  const onChange = () => setChangedAt(Date.now());
  return (
    <OperatorPage
      title={
        <>
          <bdi>{account.handle}</bdi>{" "}
          {account.suspendedAt !== null && (
            <Badge color="red" variant="light">
              Suspended
            </Badge>
          )}
        </>
      }
      tabTitle={account.handle}
      above={ABOVE}
      actions={
        <>
          <TakeBack account={account} onChange={onChange} />
          <Grant account={account} onChange={onChange} />
        </>
      }
    >
      <SimpleGrid cols={{ base: 2, md: 5 }} spacing="md">
        <Figure
          label="Balance"
          value={
            <span data-balance={balance?.available}>
              <Credits value={balance?.available} />
            </span>
          }
        >
          all buckets
        </Figure>
        <Figure label="Free" value={<Credits value={balance?.tier} />}>
          {account.nextResetAt ? (
            <>
              refills <When value={account.nextResetAt} />
            </>
          ) : (
            "no refill"
          )}
        </Figure>
        <Figure label="Purchased (crypto)" value={<Credits value={balance?.crypto} />} />
        <Figure label="Purchased" value={<Credits value={balance?.pack} />} />
        <Figure label="On hold" value={<Credits value={balance?.held} />}>
          for requests in progress
        </Figure>
      </SimpleGrid>
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        <Card title="Profile">
          <Facts>
            <Fact label="Name">
              <bdi>{account.name ?? "–"}</bdi>
            </Fact>
            <Fact label="E-mail">
              {account.email ?? "–"}
              {account.email !== null && (
                <Text size="xs" c="dimmed">
                  {account.isEmailVerified ? "Verified" : "Not verified"}
                </Text>
              )}
            </Fact>
            <Fact label="GitHub">
              <bdi>{account.githubUsername ?? "–"}</bdi>
            </Fact>
            <Fact label="Created">
              <When value={account.createdAt} />
            </Fact>
            <Fact label="ID">
              <Copyable value={account.restId} label="ID" />
            </Fact>
          </Facts>
        </Card>
        <Card title="Access">
          <Stack>
            <Access account={account} onChange={onChange} />
            <Tier account={account} onChange={onChange} />
            <Publisher account={account} onChange={onChange} />
            <OperatorAccess account={account} onChange={onChange} />
          </Stack>
        </Card>
      </SimpleGrid>
      <AccountKeys accountId={account.id} search={query.get("key") ?? ""} onChange={onChange} />
      <AccountLimits accountId={account.id} onChange={onChange} />
      <AccountUsage accountId={account.id} />
      <AccountLedger accountId={account.id} changedAt={changedAt} />
      <AccountAudit accountId={account.id} changedAt={changedAt} />
    </OperatorPage>
  );
}

interface ActProps {
  readonly account: Account;
  readonly onChange: () => void;
}

function Tier({ account: { id, handle, tier }, onChange }: ActProps) {
  const [{ data }] = useQuery({ query: OperatorTiersDocument });
  const [, setTier] = useMutation(OperatorSetTierDocument);
  const [chosen, setChosen] = useState<string>();
  const tiers = data?.gateway?.tiers ?? [];
  const names = tier === null || tiers.includes(tier) ? tiers : [tier, ...tiers];
  const selected = chosen ?? tier ?? "";
  const isChanged = selected !== (tier ?? "");
  return (
    <Group align="flex-end" gap="xs">
      <Select
        label="Tier"
        description={
          tiers.length === 0 ? "The gateway has no tiers configured." : "Free credits are topped up to those of the new tier immediately."
        }
        data={[{ value: "", label: "None" }, ...names.map((name) => ({ value: name, label: name }))]}
        value={selected}
        onChange={(value) => setChosen(value ?? "")}
        allowDeselect={false}
        disabled={tiers.length === 0 && tier === null}
        style={{ flex: "1 1 12rem" }}
      />
      <Confirm
        title="Set tier?"
        action="Set tier"
        color="blue"
        onConfirm={async () => {
          const { error } = await setTier({ input: { accountId: id, tier: selected === "" ? null : selected } });
          if (!error) {
            setChosen(undefined);
            onChange();
          }
          return error;
        }}
        trigger={(open) => (
          <Button variant="default" disabled={!isChanged} onClick={open}>
            Set tier
          </Button>
        )}
      >
        <Text>
          <bdi>{handle}</bdi> changes from {tier === null ? "no tier" : `tier ${tier}`} to{" "}
          {selected === "" ? "no tier" : `tier ${selected}`}. Credits that are already in the free bucket stay until the next refill.
        </Text>
      </Confirm>
    </Group>
  );
}

function Publisher({ account: { id, handle, isPublisher, isOperator }, onChange }: ActProps) {
  const [, setPublisher] = useMutation(OperatorSetPublisherDocument);
  return (
    <Group justify="space-between" gap="xs">
      <div style={{ flex: "1 1 12rem" }}>
        <Text size="sm" fw={500}>
          Publishing{" "}
          <Badge size="sm" variant="light" color={isPublisher ? "green" : "gray"}>
            {isPublisher ? "Allowed" : "Not allowed"}
          </Badge>
        </Text>
        <Text size="sm" c="dimmed">
          {isOperator ? "Operators can always publish models and agents." : "Permission to make models and agents public."}
        </Text>
      </div>
      {!isOperator && (
        <Confirm
          key={String(isPublisher)}
          title={isPublisher ? `Revoke ${handle}’s permission to publish?` : `Allow ${handle} to publish?`}
          action={isPublisher ? "Revoke publishing" : "Allow publishing"}
          color={isPublisher ? "red" : "blue"}
          onConfirm={async () => {
            const { error } = await setPublisher({ input: { accountId: id, isPublisher: !isPublisher } });
            if (!error) onChange();
            return error;
          }}
          trigger={(open) => (
            <Button variant="default" size="xs" onClick={open}>
              {isPublisher ? "Revoke publishing" : "Allow publishing"}
            </Button>
          )}
        >
          <Text>
            {isPublisher
              ? "The account can no longer make models or agents public. Public ones stay public."
              : "The account can make its models and agents public."}
          </Text>
        </Confirm>
      )}
    </Group>
  );
}

function OperatorAccess({ account: { id, handle, isOperator }, onChange }: ActProps) {
  const [, setOperator] = useMutation(OperatorSetOperatorDocument);
  return (
    <Group justify="space-between" gap="xs">
      <div style={{ flex: "1 1 12rem" }}>
        <Text size="sm" fw={500}>
          Operator{" "}
          <Badge size="sm" variant="light" color={isOperator ? "green" : "gray"}>
            {isOperator ? "Yes" : "No"}
          </Badge>
        </Text>
        <Text size="sm" c="dimmed">
          Access to the operator pages and all their actions.
        </Text>
      </div>
      <Confirm
        key={String(isOperator)}
        title={isOperator ? `Remove ${handle} as operator?` : `Make ${handle} an operator?`}
        action={isOperator ? "Remove operator" : "Make operator"}
        color={isOperator ? "red" : "blue"}
        onConfirm={async () => {
          const { error } = await setOperator({ input: { accountId: id, isOperator: !isOperator } });
          if (!error) onChange();
          return error;
        }}
        trigger={(open) => (
          <Button variant="default" size="xs" onClick={open}>
            {isOperator ? "Remove operator" : "Make operator"}
          </Button>
        )}
      >
        <Text>
          {isOperator
            ? "The account immediately loses access to other accounts and to all operator actions. The last operator cannot be removed."
            : "The account can immediately see every account, grant credits, set tiers and make others operators."}
        </Text>
      </Confirm>
    </Group>
  );
}
