/** The probe of an upstream (docs/spec/community-models.md#probe). */

import { requireKeyManager } from "../../services/access/permissions.js";
import { testCommunityModelInput } from "../../services/community-models/probe.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import type { Route } from "../route.js";

export function addCommunityModelTestRoutes(
  route: Route,
  endpoint: Endpoint,
  { communityModelProbe }: Pick<Services, "communityModelProbe">,
): void {
  route("/my-models/test", {
    POST: endpoint({
      requires: requireKeyManager,
      body: testCommunityModelInput,
      handler: (ctx, { body }) => communityModelProbe.test(ctx, body),
    }),
  });
}
