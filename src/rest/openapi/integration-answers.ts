/** What the routes about connected apps answer; a part of `answers.ts`. */
import * as z from "zod";
import { CONNECTED_APP_STATUSES } from "../../services/integrations/broker.js";

const nullableText = z.string().nullable();

const connectedApp = z.object({
  id: z.string(),
  toolkit: z.string().describe("The toolkit's slug."),
  name: nullableText,
  description: z.string(),
  logo: nullableText.describe("The address of a picture."),
  alias: nullableText.describe("What the person calls this connection."),
  status: z.enum(CONNECTED_APP_STATUSES),
});

const toolkit = z.object({ slug: z.string(), name: z.string(), description: z.string(), logo: nullableText });

export const INTEGRATION_ANSWERS = {
  ConnectedAppList: z.object({ data: z.array(connectedApp) }),
  ToolkitList: z.object({ data: z.array(toolkit) }),
  NewConnection: z.object({
    url: z.string().describe("The page on which a person signs in to the app and approves. Send a browser there."),
    id: z.string(),
  }),
} as const satisfies Record<string, z.ZodType>;
