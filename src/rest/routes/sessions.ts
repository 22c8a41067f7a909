/** The account's sessions (docs/spec/sessions.md#sessions). Only a session may list and end them. */
import * as z from "zod";
import type { Services } from "../../services/services.js";
import type { SessionRow } from "../../services/sessions/sessions.js";
import type { Endpoint } from "../endpoint.js";
import { json } from "../openapi/answer.js";
import { amount, nullableText, pathId, time } from "../openapi/schemas.js";
import type { Route } from "../route.js";

const sessionList = json(
  "Sessions",
  z.object({
    data: z.array(
      z.looseObject({
        id: z.string(),
        createdAt: time,
        expiresAt: time,
        userAgent: nullableText,
        ipAddress: nullableText,
        isCurrent: z.boolean(),
      }),
    ),
  }),
);

export function addSessionRoutes(route: Route, endpoint: Endpoint, { sessions }: Pick<Services, "sessions">): void {
  route("/sessions", {
    GET: endpoint({
      id: "listSessions",
      tag: "Account",
      summary: "Lists the account's sessions. Sessions only.",
      answer: sessionList,
      handler: async (ctx) => ({ data: (await sessions.all(ctx)).map(toSession) }),
    }),
    DELETE: endpoint({
      id: "revokeOtherSessions",
      tag: "Account",
      summary: "Ends all sessions except the current one. Sessions only.",
      answer: json("EndedSessions", z.object({ ended: amount })),
      handler: async (ctx) => ({ ended: (await sessions.revokeOthers(ctx)).length }),
    }),
  });
  route("/sessions/:id", {
    DELETE: endpoint({
      id: "revokeSession",
      tag: "Account",
      summary: "Ends a session, on all gateways within a second. Sessions only.",
      params: z.object({ id: pathId("The ID of the session.") }),
      answer: json("RevokedSession", z.object({ id: z.string(), revoked: z.literal(true) })),
      handler: async (ctx, { params }) => {
        const { id } = await sessions.revoke(ctx, params.id);
        return { id, revoked: true as const };
      },
    }),
  });
}

function toSession({ id, createdAt, expiresAt, userAgent, ipAddress, isCurrent }: SessionRow) {
  return { id, createdAt, expiresAt, userAgent, ipAddress, isCurrent };
}
