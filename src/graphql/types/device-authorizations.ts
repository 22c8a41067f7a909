/** The device flow (docs/spec/authorization.md#device-flow): what a device asks, and what a signed-in person decides. */

import { formatNanocredits } from "../../lib/money.js";
import { parsePermitted, requireSession } from "../../services/access/permissions.js";
import {
  approveDeviceAuthorizationInput,
  createDeviceAuthorizationInput,
  DEVICE_STATUSES,
  type DeviceAuthorization as Device,
  denyDeviceAuthorizationInput,
  type NewDevice,
  redeemDeviceCodeInput,
} from "../../services/authorizations/device-authorizations.js";
import {
  DEVICE_TOKEN_ERRORS,
  type DeviceTokenAnswer,
  type DeviceToken as Token,
  type DeviceTokenRefusal as TokenRefusal,
} from "../../services/authorizations/device-redemption.js";
import { parseInput } from "../../services/requests/input.js";
import { builder, enumValues } from "../builder.js";
import { cancellable } from "../cancellable.js";
import { AccountPermissionEnum } from "./api-keys.js";
import { GrantTerms, RequestingApp } from "./grants.js";

const DeviceAuthorizationStatus = builder.enumType("DeviceAuthorizationStatus", {
  description: "PENDING: nobody has decided. APPROVED: the device may fetch its key. USED: it has. DENIED, USED and EXPIRED are final.",
  values: enumValues(DEVICE_STATUSES),
});

const DeviceAuthorization = builder.objectRef<Device>("DeviceAuthorization").implement({
  description: "A device that asks for a key which somebody else pays for.",
  fields: (t) => ({
    userCode: t.exposeString("userCode", { description: "XXXX-XXXX, as the device shows it." }),
    status: t.expose("status", { type: DeviceAuthorizationStatus }),
    app: t.expose("app", { type: RequestingApp, nullable: true, description: "Null: it has not said who it is. Show it as unverified." }),
    asked: t.expose("asked", { type: GrantTerms, description: "What is asked for; less may be granted." }),
    creditBudgetMax: t.field({
      type: "Credits",
      description: "The most that can be granted now: the budget that is asked for, or the account's balance where that is less.",
      resolve: ({ creditBudgetMax }) => formatNanocredits(creditBudgetMax),
    }),
    granted: t.expose("granted", { type: GrantTerms, nullable: true, description: "What the caller has approved." }),
    clientAddress: t.exposeString("clientAddress", { description: "Where the device asked from. Show it, with the time." }),
    createdAt: t.expose("createdAt", { type: "DateTime" }),
    expiresAt: t.expose("expiresAt", { type: "DateTime" }),
    decidedAt: t.expose("decidedAt", { type: "DateTime", nullable: true }),
  }),
});

const CreateDeviceAuthorizationInput = builder.inputType("CreateDeviceAuthorizationInput", {
  fields: (t) => ({
    clientId: t.string({ description: "The app key (`pk_`) of the app on the device. Omitted: an unverified app." }),
    scope: t.string({ description: "Permissions with spaces between them: profile, balance, usage. Omitted: none." }),
  }),
});

const CreateDeviceAuthorizationPayload = builder.objectRef<NewDevice>("CreateDeviceAuthorizationPayload").implement({
  fields: (t) => ({
    deviceCode: t.exposeString("deviceCode", { description: "The device's own; nobody else sees it." }),
    userCode: t.exposeString("userCode", { description: "XXXX-XXXX, to be shown." }),
    verificationUri: t.exposeString("verificationUri"),
    verificationUriComplete: t.exposeString("verificationUriComplete", { description: "With the user code in it, for a QR code." }),
    expiresIn: t.exposeInt("expiresIn", { description: "Seconds." }),
    interval: t.exposeInt("interval", { description: "Seconds to wait between two polls." }),
  }),
});

builder.mutationField("createDeviceAuthorization", (t) =>
  t.field({
    type: CreateDeviceAuthorizationPayload,
    nullable: true,
    description: "Begins to connect a device (RFC 8628). Needs no key.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: CreateDeviceAuthorizationInput, required: true }) },
    resolve: (_root, { input }, ctx) => ctx.services.deviceAuthorizations.create(ctx, parseInput(createDeviceAuthorizationInput, input)),
  }),
);

const DeviceToken = builder.objectRef<Token>("DeviceToken").implement({
  description: "The key that was granted.",
  fields: (t) => ({
    accessToken: t.exposeString("accessToken", { description: "A secret key. It is shown this once." }),
    scope: t.field({ type: [AccountPermissionEnum], resolve: ({ scope }) => [...scope] }),
    expiresIn: t.exposeInt("expiresIn", { description: "Seconds." }),
  }),
});

const DeviceTokenError = builder.enumType("DeviceTokenError", {
  description: "As RFC 8628 3.5 and RFC 6749 5.2 name them. After AUTHORIZATION_PENDING and SLOW_DOWN, and only then, poll again.",
  values: enumValues(DEVICE_TOKEN_ERRORS),
});

const DeviceTokenRefusal = builder.objectRef<TokenRefusal>("DeviceTokenRefusal").implement({
  description: "Why there is no key, or not yet.",
  fields: (t) => ({
    error: t.expose("error", { type: DeviceTokenError }),
    description: t.exposeString("description"),
    interval: t.exposeInt("interval", { nullable: true, description: "Seconds to wait until the next poll. Null: another one is no use." }),
  }),
});

const RedeemDeviceCodePayload = builder.unionType("RedeemDeviceCodePayload", {
  types: [DeviceToken, DeviceTokenRefusal],
  resolveType: (answer: DeviceTokenAnswer) => (answer.kind === "token" ? DeviceToken : DeviceTokenRefusal),
});

const RedeemDeviceCodeInput = builder.inputType("RedeemDeviceCodeInput", {
  fields: (t) => ({
    deviceCode: t.string({ required: true }),
    clientId: t.string({ description: "When it is sent, it must be the one that the code was asked for with." }),
  }),
});

builder.mutationField("redeemDeviceCode", (t) =>
  t.field({
    type: RedeemDeviceCodePayload,
    nullable: true,
    description: "One poll of a device: its key once somebody has approved, else why not. Needs no key.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: RedeemDeviceCodeInput, required: true }) },
    resolve: (_root, { input }, ctx) => ctx.services.deviceAuthorizations.poll(ctx, parseInput(redeemDeviceCodeInput, input)),
  }),
);

const LIMITED = "Wrong codes are limited to 10 a minute for an account.";

builder.queryField("deviceAuthorization", (t) =>
  t.field({
    type: DeviceAuthorization,
    nullable: true,
    description: `What asks with this user code. For a signed-in person; no key will do. ${LIMITED}`,
    extensions: { isOnePerOperation: true },
    args: { userCode: t.arg.string({ required: true, description: "In any case, with or without the dash." }) },
    resolve: (_root, { userCode }, ctx) => ctx.services.deviceAuthorizations.find(ctx, userCode),
  }),
);

const ApproveDeviceAuthorizationInput = builder.inputType("ApproveDeviceAuthorizationInput", {
  description:
    "What is left out is granted as it was asked for, the budget at most `creditBudgetMax`; nothing can be widened, and no budget is larger than the balance.",
  fields: (t) => ({
    userCode: t.string({ required: true }),
    models: t.stringList({ description: "Ids or aliases, at least one." }),
    creditBudget: t.field({ type: "Credits" }),
    expiresInDays: t.int(),
    permissions: t.field({ type: [AccountPermissionEnum] }),
  }),
});

builder.mutationField("approveDeviceAuthorization", (t) =>
  t.field({
    type: DeviceAuthorization,
    nullable: true,
    description: `Lets the device fetch a key. Show the person the code, the app and the address first. For a signed-in person; no key will do. ${LIMITED}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: ApproveDeviceAuthorizationInput, required: true }) },
    resolve: (_root, { input }, ctx) =>
      ctx.services.deviceAuthorizations.approve(
        ctx,
        parsePermitted(ctx, requireSession, approveDeviceAuthorizationInput, withoutNulls(input)),
      ),
  }),
);

const DenyDeviceAuthorizationInput = builder.inputType("DenyDeviceAuthorizationInput", {
  fields: (t) => ({ userCode: t.string({ required: true }) }),
});

builder.mutationField("denyDeviceAuthorization", (t) =>
  t.field({
    type: DeviceAuthorization,
    nullable: true,
    description: `Gives the device nothing. For a signed-in person; no key will do. ${LIMITED}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: DenyDeviceAuthorizationInput, required: true }) },
    resolve: (_root, { input }, ctx) =>
      ctx.services.deviceAuthorizations.deny(ctx, parsePermitted(ctx, requireSession, denyDeviceAuthorizationInput, input)),
  }),
);

builder.subscriptionField("deviceAuthorizationChanged", (t) =>
  t.field({
    type: DeviceAuthorization,
    description: `Each change of status until a final one; at once when there was one before. For a signed-in person, or a secret key with the permission KEYS. ${LIMITED}`,
    args: { userCode: t.arg.string({ required: true }) },
    subscribe: (_root, { userCode }, ctx) =>
      cancellable(ctx, (live) => ctx.services.deviceAuthorizations.watch(live, userCode), ctx.closing),
    resolve: (device) => device,
  }),
);

/** GraphQL has two ways to leave a field out. Of the models, null says something: every model. */
function withoutNulls<Input extends { readonly models?: unknown }>(input: Input): object {
  return Object.fromEntries(Object.entries(input).filter(([name, value]) => value !== null || name === "models"));
}
