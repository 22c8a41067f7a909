/** The device flow (docs/spec/authorization.md#device-flow): what a device asks, and what a signed-in person decides. */

import { formatNanocredits } from "../../lib/money.js";
import { parsePermitted, requireSession } from "../../services/access/permissions.js";
import {
  approveDeviceAuthorizationInput,
  createDeviceAuthorizationInput,
  type DeviceAuthorization as Device,
  type DeviceStatus,
  denyDeviceAuthorizationInput,
  type NewDevice,
  redeemDeviceCodeInput,
} from "../../services/authorizations/device-authorizations.js";
import type {
  DeviceTokenAnswer,
  DeviceTokenError as TokenError,
  DeviceTokenRefusal as TokenRefusal,
} from "../../services/authorizations/device-redemption.js";
import { parseInput } from "../../services/requests/input.js";
import { builder, describedValues } from "../builder.js";
import { cancellable } from "../cancellable.js";
import { byId, Node, nodesReadBy } from "../nodes.js";
import { AccountPermissionEnum } from "./api-keys.js";
import { App } from "./apps.js";
import {
  CHOICE_DESCRIPTION,
  CREDIT_BUDGET_MAX,
  choiceFields,
  GrantTerms,
  IssuedToken,
  SESSION_ONLY,
  UNNAMED_APP,
  withoutNulls,
} from "./grants.js";

const DeviceAuthorizationStatus = builder.enumType("DeviceAuthorizationStatus", {
  description: "How it stands with a device that asks. DENIED, USED and EXPIRED are final.",
  values: describedValues<DeviceStatus>({
    pending: "Nobody has decided.",
    approved: "Somebody has, and the device may fetch its key.",
    denied: "Somebody has, and the device gets nothing.",
    used: "The device has fetched its key.",
    expired: "Nobody decided in time, or the device did not fetch its key.",
  }),
});

const DeviceAuthorization = builder.objectRef<Device>("DeviceAuthorization").implement({
  description: "A device that asks for a key which somebody else pays for. Its `restId` is its user code.",
  interfaces: [Node],
  extensions: nodesReadBy(async (ctx, ids) => byId(await ctx.services.deviceAuthorizations.getMany(ctx, ids))),
  fields: (t) => ({
    userCode: t.exposeString("userCode", { description: "XXXX-XXXX, as the device shows it." }),
    status: t.expose("status", { type: DeviceAuthorizationStatus, description: "How it stands." }),
    app: t.expose("app", { type: App, nullable: true, description: `The app on the device. ${UNNAMED_APP} Show it as unverified.` }),
    asked: t.expose("asked", { type: GrantTerms, description: "What is asked for; less may be granted." }),
    creditBudgetMax: t.field({
      type: "Credits",
      description: CREDIT_BUDGET_MAX,
      resolve: ({ creditBudgetMax }) => formatNanocredits(creditBudgetMax),
    }),
    granted: t.expose("granted", { type: GrantTerms, nullable: true, description: "What the caller has approved." }),
    clientAddress: t.exposeString("clientAddress", { description: "Where the device asked from. Show it, with the time." }),
    createdAt: t.expose("createdAt", { type: "DateTime", description: "When it asked." }),
    expiresAt: t.expose("expiresAt", { type: "DateTime", description: "Until when somebody may decide, and the device fetch its key." }),
    decidedAt: t.expose("decidedAt", { type: "DateTime", nullable: true, description: "When somebody decided. Null: nobody has." }),
  }),
});

const CreateDeviceAuthorizationInput = builder.inputType("CreateDeviceAuthorizationInput", {
  description: "Who asks, and for what.",
  fields: (t) => ({
    clientId: t.string({ description: "The app key (`pk_`) of the app on the device. Omitted: an unverified app." }),
    scope: t.field({
      type: [AccountPermissionEnum],
      description: "What the key may do with the account: nothing unless stated, and never KEYS.",
    }),
  }),
});

const CreateDeviceAuthorizationPayload = builder.objectRef<NewDevice>("CreateDeviceAuthorizationPayload").implement({
  description: "What a device needs to know, and what it shows.",
  fields: (t) => ({
    deviceCode: t.exposeString("deviceCode", { description: "The device's own, for `redeemDeviceCode`; nobody else sees it." }),
    userCode: t.exposeString("userCode", { description: "XXXX-XXXX, to be shown." }),
    verificationUri: t.exposeString("verificationUri", { description: "The page on which a person types the user code." }),
    verificationUriComplete: t.exposeString("verificationUriComplete", { description: "With the user code in it, for a QR code." }),
    expiresIn: t.exposeInt("expiresIn", { description: "Seconds until both codes end." }),
    interval: t.exposeInt("interval", { description: "Seconds to wait between two polls." }),
  }),
});

builder.mutationField("createDeviceAuthorization", (t) =>
  t.field({
    type: CreateDeviceAuthorizationPayload,
    nullable: true,
    description: "Begins to connect a device (RFC 8628). Needs no key.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: CreateDeviceAuthorizationInput, required: true, description: "Who asks, and for what." }) },
    resolve: (_root, { input: { clientId, scope } }, ctx) =>
      ctx.services.deviceAuthorizations.create(ctx, parseInput(createDeviceAuthorizationInput, { clientId, scope: scope?.join(" ") })),
  }),
);

const DeviceTokenError = builder.enumType("DeviceTokenError", {
  description: "As RFC 8628 3.5 and RFC 6749 5.2 name them. After AUTHORIZATION_PENDING and SLOW_DOWN, and only then, poll again.",
  values: describedValues<TokenError>({
    authorization_pending: "Nobody has decided yet.",
    slow_down: "Nobody has decided yet, and the device polls too fast.",
    access_denied: "Somebody has refused, or has as many keys as an account may have.",
    expired_token: "The device code has ended.",
    invalid_grant: "There is no such device code, or its key has been fetched.",
    invalid_client: "The app key is not that of the app that asked, or is no longer good.",
  }),
});

const DeviceTokenRefusal = builder.objectRef<TokenRefusal>("DeviceTokenRefusal").implement({
  description: "Why there is no key, or not yet.",
  fields: (t) => ({
    error: t.expose("error", { type: DeviceTokenError, description: "The reason, for programs." }),
    description: t.exposeString("description", { description: "The reason, for people." }),
    interval: t.exposeInt("interval", { nullable: true, description: "Seconds to wait until the next poll. Null: another one is no use." }),
  }),
});

const RedeemDeviceCodePayload = builder.objectRef<DeviceTokenAnswer>("RedeemDeviceCodePayload").implement({
  description: "What one poll of a device has brought: its key, or why there is none.",
  fields: (t) => ({
    token: t.field({
      type: IssuedToken,
      nullable: true,
      description: "The key that was granted. Null: `refusal` says why.",
      resolve: (answer) => (answer.kind === "token" ? answer : null),
    }),
    refusal: t.field({
      type: DeviceTokenRefusal,
      nullable: true,
      description: "Why there is no key, or not yet. Null: there is.",
      resolve: (answer) => (answer.kind === "refusal" ? answer : null),
    }),
  }),
});

const RedeemDeviceCodeInput = builder.inputType("RedeemDeviceCodeInput", {
  description: "Which device polls.",
  fields: (t) => ({
    deviceCode: t.string({ required: true, description: "What `createDeviceAuthorization` has answered." }),
    clientId: t.string({ description: "When it is sent, it must be the one that the code was asked for with." }),
  }),
});

builder.mutationField("redeemDeviceCode", (t) =>
  t.field({
    type: RedeemDeviceCodePayload,
    nullable: true,
    description: "One poll of a device: its key once somebody has approved, else why not. Needs no key.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: RedeemDeviceCodeInput, required: true, description: "Which device." }) },
    resolve: (_root, { input }, ctx) => ctx.services.deviceAuthorizations.poll(ctx, parseInput(redeemDeviceCodeInput, input)),
  }),
);

const USER_CODE = "The device's user code, in any case, with or without the dash.";
const LIMITED = "Wrong codes are limited to 10 a minute for an account.";

builder.queryField("deviceAuthorization", (t) =>
  t.field({
    type: DeviceAuthorization,
    nullable: true,
    description: `What asks with this user code. ${SESSION_ONLY} ${LIMITED}`,
    extensions: { isOnePerOperation: true },
    args: { userCode: t.arg.string({ required: true, description: USER_CODE }) },
    resolve: (_root, { userCode }, ctx) => ctx.services.deviceAuthorizations.find(ctx, userCode),
  }),
);

interface Decided {
  readonly device: Device;
}

/** The person's answer. */
function decisionPayload(name: string, description: string) {
  return builder.objectRef<Decided>(name).implement({
    description,
    fields: (t) => ({
      deviceAuthorization: t.expose("device", { type: DeviceAuthorization, description: "As it now stands." }),
    }),
  });
}

const ApproveDeviceAuthorizationInput = builder.inputType("ApproveDeviceAuthorizationInput", {
  description: CHOICE_DESCRIPTION,
  fields: (t) => ({ userCode: t.string({ required: true, description: USER_CODE }), ...choiceFields(t) }),
});

const ApproveDeviceAuthorizationPayload = decisionPayload("ApproveDeviceAuthorizationPayload", "A device that may fetch a key.");

builder.mutationField("approveDeviceAuthorization", (t) =>
  t.field({
    type: ApproveDeviceAuthorizationPayload,
    nullable: true,
    description: `Lets the device fetch a key. Show the person the code, the app and the address first. ${SESSION_ONLY} ${LIMITED}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: ApproveDeviceAuthorizationInput, required: true, description: "Which device, and what it is granted." }) },
    resolve: async (_root, { input }, ctx) => {
      const choice = parsePermitted(ctx, requireSession, approveDeviceAuthorizationInput, withoutNulls(input));
      return { device: await ctx.services.deviceAuthorizations.approve(ctx, choice) };
    },
  }),
);

const DenyDeviceAuthorizationInput = builder.inputType("DenyDeviceAuthorizationInput", {
  description: "Which device is given nothing.",
  fields: (t) => ({ userCode: t.string({ required: true, description: USER_CODE }) }),
});

const DenyDeviceAuthorizationPayload = decisionPayload("DenyDeviceAuthorizationPayload", "A device that is given nothing.");

builder.mutationField("denyDeviceAuthorization", (t) =>
  t.field({
    type: DenyDeviceAuthorizationPayload,
    nullable: true,
    description: `Gives the device nothing. ${SESSION_ONLY} ${LIMITED}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: DenyDeviceAuthorizationInput, required: true, description: "Which device." }) },
    resolve: async (_root, { input }, ctx) => {
      const { userCode } = parsePermitted(ctx, requireSession, denyDeviceAuthorizationInput, input);
      return { device: await ctx.services.deviceAuthorizations.deny(ctx, { userCode }) };
    },
  }),
);

builder.subscriptionField("deviceAuthorizationChanged", (t) =>
  t.field({
    type: DeviceAuthorization,
    description: `Each change of status until a final one; at once when there was one before. For a signed-in person, or a secret key with the permission KEYS. ${LIMITED}`,
    args: { userCode: t.arg.string({ required: true, description: USER_CODE }) },
    subscribe: (_root, { userCode }, ctx) =>
      cancellable(ctx, (live) => ctx.services.deviceAuthorizations.watch(live, userCode), ctx.closing),
    resolve: (device) => device,
  }),
);
