/** The device flow (docs/spec/authorization.md#device-flow): requests of devices, and decisions by signed-in persons. */

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
  description: "The status of a device authorization. DENIED, USED and EXPIRED are final.",
  values: describedValues<DeviceStatus>({
    pending: "Waits for a decision.",
    approved: "Approved. The device can fetch its key.",
    denied: "Denied. The device gets no key.",
    used: "The device has fetched its key.",
    expired: "Not decided in time, or the key was not fetched in time.",
  }),
});

const DeviceAuthorization = builder.objectRef<Device>("DeviceAuthorization").implement({
  description: "A device's request for a key that a person pays for. The `restId` is the user code.",
  interfaces: [Node],
  extensions: nodesReadBy(async (ctx, ids) => byId(await ctx.services.deviceAuthorizations.getMany(ctx, ids))),
  fields: (t) => ({
    userCode: t.exposeString("userCode", { description: "The user code in the form XXXX-XXXX, as the device shows it." }),
    status: t.expose("status", { type: DeviceAuthorizationStatus, description: "The status of the request." }),
    app: t.expose("app", { type: App, nullable: true, description: `The app on the device. ${UNNAMED_APP} Show it as unverified.` }),
    asked: t.expose("asked", { type: GrantTerms, description: "The requested terms. The person may grant less." }),
    creditBudgetMax: t.field({
      type: "Credits",
      description: CREDIT_BUDGET_MAX,
      resolve: ({ creditBudgetMax }) => formatNanocredits(creditBudgetMax),
    }),
    granted: t.expose("granted", { type: GrantTerms, nullable: true, description: "The terms that the caller approved." }),
    clientAddress: t.exposeString("clientAddress", { description: "The IP address of the device. Show it with the time of the request." }),
    createdAt: t.expose("createdAt", { type: "DateTime", description: "When the device made the request." }),
    expiresAt: t.expose("expiresAt", {
      type: "DateTime",
      description: "When the request expires, for the decision and for fetching the key.",
    }),
    decidedAt: t.expose("decidedAt", {
      type: "DateTime",
      nullable: true,
      description: "When the request was decided. Null while it is pending.",
    }),
  }),
});

const CreateDeviceAuthorizationInput = builder.inputType("CreateDeviceAuthorizationInput", {
  description: "Parameters of `createDeviceAuthorization`.",
  fields: (t) => ({
    clientId: t.string({ description: "The app key (`pk_`) of the app on the device. When omitted, the app is unverified." }),
    scope: t.field({
      type: [AccountPermissionEnum],
      description: "Permissions of the key on the account. Defaults to none. KEYS is never granted.",
    }),
  }),
});

const CreateDeviceAuthorizationPayload = builder.objectRef<NewDevice>("CreateDeviceAuthorizationPayload").implement({
  description: "The result of `createDeviceAuthorization`: codes for the device to poll with and to show.",
  fields: (t) => ({
    deviceCode: t.exposeString("deviceCode", { description: "The secret code of the device, for `redeemDeviceCode`." }),
    userCode: t.exposeString("userCode", { description: "The user code to show, in the form XXXX-XXXX." }),
    verificationUri: t.exposeString("verificationUri", { description: "The URL of the page on which the person enters the user code." }),
    verificationUriComplete: t.exposeString("verificationUriComplete", { description: "The same URL with the user code, for a QR code." }),
    expiresIn: t.exposeInt("expiresIn", { description: "Seconds until both codes expire." }),
    interval: t.exposeInt("interval", { description: "The minimum number of seconds between polls." }),
  }),
});

builder.mutationField("createDeviceAuthorization", (t) =>
  t.field({
    type: CreateDeviceAuthorizationPayload,
    nullable: true,
    description: "Starts a device authorization (RFC 8628). Needs no key.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: CreateDeviceAuthorizationInput, required: true, description: "The app and the requested permissions." }) },
    resolve: (_root, { input: { clientId, scope } }, ctx) =>
      ctx.services.deviceAuthorizations.create(ctx, parseInput(createDeviceAuthorizationInput, { clientId, scope: scope?.join(" ") })),
  }),
);

const DeviceTokenError = builder.enumType("DeviceTokenError", {
  description: "The error codes of RFC 8628 3.5 and RFC 6749 5.2. Poll again only after AUTHORIZATION_PENDING and SLOW_DOWN.",
  values: describedValues<TokenError>({
    authorization_pending: "The request is not yet decided.",
    slow_down: "The request is not yet decided, and the device polls too fast.",
    access_denied: "The person denied the request, or their account has the maximum number of keys.",
    expired_token: "The device code has expired.",
    invalid_grant: "The device code does not exist, or its key was already fetched.",
    invalid_client: "The app key belongs to another app, or is no longer valid.",
  }),
});

const DeviceTokenRefusal = builder.objectRef<TokenRefusal>("DeviceTokenRefusal").implement({
  description: "The reason why no key is returned.",
  fields: (t) => ({
    error: t.expose("error", { type: DeviceTokenError, description: "The error code." }),
    description: t.exposeString("description", { description: "The error message for people." }),
    interval: t.exposeInt("interval", {
      nullable: true,
      description: "Seconds to wait before the next poll. Null when polling again is pointless.",
    }),
  }),
});

const RedeemDeviceCodePayload = builder.objectRef<DeviceTokenAnswer>("RedeemDeviceCodePayload").implement({
  description: "The result of `redeemDeviceCode`: a key or a refusal.",
  fields: (t) => ({
    token: t.field({
      type: IssuedToken,
      nullable: true,
      description: "The granted key. Null when `refusal` is set.",
      resolve: (answer) => (answer.kind === "token" ? answer : null),
    }),
    refusal: t.field({
      type: DeviceTokenRefusal,
      nullable: true,
      description: "The reason why no key is returned. Null when `token` is set.",
      resolve: (answer) => (answer.kind === "refusal" ? answer : null),
    }),
  }),
});

const RedeemDeviceCodeInput = builder.inputType("RedeemDeviceCodeInput", {
  description: "Parameters of `redeemDeviceCode`.",
  fields: (t) => ({
    deviceCode: t.string({ required: true, description: "The device code from `createDeviceAuthorization`." }),
    clientId: t.string({ description: "The app key. When sent, it must be the one that the device code was requested with." }),
    resource: t.string({ description: "The address that the key is for: this gateway's `/mcp`, or its base." }),
  }),
});

builder.mutationField("redeemDeviceCode", (t) =>
  t.field({
    type: RedeemDeviceCodePayload,
    nullable: true,
    description: "Polls once for the key of a device. Returns it after approval, and the reason otherwise. Needs no key.",
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: RedeemDeviceCodeInput, required: true, description: "The device that polls." }) },
    resolve: (_root, { input }, ctx) => ctx.services.deviceAuthorizations.poll(ctx, parseInput(redeemDeviceCodeInput, input)),
  }),
);

const USER_CODE = "The user code of the device, in any case, with or without the dash.";
const LIMITED = "Limited to 10 wrong codes per minute and account.";

builder.queryField("deviceAuthorization", (t) =>
  t.field({
    type: DeviceAuthorization,
    nullable: true,
    description: `The device authorization with this user code. ${SESSION_ONLY} ${LIMITED}`,
    extensions: { isOnePerOperation: true },
    args: { userCode: t.arg.string({ required: true, description: USER_CODE }) },
    resolve: (_root, { userCode }, ctx) => ctx.services.deviceAuthorizations.find(ctx, userCode),
  }),
);

interface Decided {
  readonly device: Device;
}

function decisionPayload(name: string, description: string) {
  return builder.objectRef<Decided>(name).implement({
    description,
    fields: (t) => ({
      deviceAuthorization: t.expose("device", { type: DeviceAuthorization, description: "The device authorization after the decision." }),
    }),
  });
}

const ApproveDeviceAuthorizationInput = builder.inputType("ApproveDeviceAuthorizationInput", {
  description: CHOICE_DESCRIPTION,
  fields: (t) => ({ userCode: t.string({ required: true, description: USER_CODE }), ...choiceFields(t) }),
});

const ApproveDeviceAuthorizationPayload = decisionPayload(
  "ApproveDeviceAuthorizationPayload",
  "The result of `approveDeviceAuthorization`.",
);

builder.mutationField("approveDeviceAuthorization", (t) =>
  t.field({
    type: ApproveDeviceAuthorizationPayload,
    nullable: true,
    description: `Approves a device authorization, so that the device can fetch a key. Show the person the code, the app and the address first. ${SESSION_ONLY} ${LIMITED}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: ApproveDeviceAuthorizationInput, required: true, description: "The device and the terms to grant." }) },
    resolve: async (_root, { input }, ctx) => {
      const choice = parsePermitted(ctx, requireSession, approveDeviceAuthorizationInput, withoutNulls(input));
      return { device: await ctx.services.deviceAuthorizations.approve(ctx, choice) };
    },
  }),
);

const DenyDeviceAuthorizationInput = builder.inputType("DenyDeviceAuthorizationInput", {
  description: "Parameters of `denyDeviceAuthorization`.",
  fields: (t) => ({ userCode: t.string({ required: true, description: USER_CODE }) }),
});

const DenyDeviceAuthorizationPayload = decisionPayload("DenyDeviceAuthorizationPayload", "The result of `denyDeviceAuthorization`.");

builder.mutationField("denyDeviceAuthorization", (t) =>
  t.field({
    type: DenyDeviceAuthorizationPayload,
    nullable: true,
    description: `Denies a device authorization. ${SESSION_ONLY} ${LIMITED}`,
    extensions: { isOnePerOperation: true },
    args: { input: t.arg({ type: DenyDeviceAuthorizationInput, required: true, description: "The device to deny." }) },
    resolve: async (_root, { input }, ctx) => {
      const { userCode } = parsePermitted(ctx, requireSession, denyDeviceAuthorizationInput, input);
      return { device: await ctx.services.deviceAuthorizations.deny(ctx, { userCode }) };
    },
  }),
);

builder.subscriptionField("deviceAuthorizationChanged", (t) =>
  t.field({
    type: DeviceAuthorization,
    description: `Status changes of a device authorization until a final status. Sends the current status at once when it was already decided. For signed-in persons, and for secret keys with the permission KEYS. ${LIMITED}`,
    args: { userCode: t.arg.string({ required: true, description: USER_CODE }) },
    subscribe: (_root, { userCode }, ctx) => cancellable(ctx, (live) => ctx.services.deviceAuthorizations.watch(live, userCode)),
    resolve: (device) => device,
  }),
);
