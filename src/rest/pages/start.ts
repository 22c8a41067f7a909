/** The page at the gateway's own address: an introduction and links. Programs get JSON there (health.ts). */
import type { Addresses } from "../../lib/urls.js";
import { type Html, html } from "./html.js";
import type { Page } from "./page.js";

export interface GatewayInfo {
  readonly addresses: () => Addresses;
  /** GraphiQL is at /graphql. */
  readonly hasGraphiQL: boolean;
  /** Origin of the blob store that browsers use; null: the media host. */
  readonly blobOrigin: string | null;
}

export interface Start extends GatewayInfo {
  /** Address of the sign-in pages, without a trailing slash. */
  readonly pages: string;
  readonly isSignUpOpen: boolean;
}

export function startPage({ pages, isSignUpOpen, ...gateway }: Start): Page {
  const { baseUrl } = gateway.addresses();
  const body = html`<h1>One key and one bill for generative AI</h1>
<p>This is a Sluice gateway. It takes the requests of OpenAI clients, and of REST and GraphQL, to models of every kind (text, pictures, video, speech, music, embeddings), and they are paid for with prepaid credits.</p>
<div class="buttons">
<a class="button primary" href="${pages}/sign-in">Sign in</a>
${isSignUpOpen ? html`<a class="button" href="${pages}/sign-up">Create an account</a>` : ""}
</div>
${isSignUpOpen ? "" : html`<p class="soft">The operator of this gateway creates accounts: ask them for one.</p>`}
<h2>Begin</h2>
<p>Give an OpenAI client this as its base URL, and an API key of your account:</p>
<pre><code>${baseUrl}/v1</code></pre>
<p>The list of models needs no key:</p>
<pre><code>curl ${baseUrl}/v1/models</code></pre>
<h2>Read on</h2>
${gatewayLinks(gateway)}`;
  return { title: "A gateway for generative AI", body };
}

function gatewayLinks({ addresses, hasGraphiQL }: Pick<GatewayInfo, "addresses" | "hasGraphiQL">): Html {
  const { baseUrl } = addresses();
  return html`<ul>
<li><a href="${baseUrl}/docs">API reference</a>: every route of the REST API, to read and to try</li>
<li><a href="${baseUrl}/openapi.json">OpenAPI document</a>: the same for programs</li>
${hasGraphiQL ? html`<li><a href="${baseUrl}/graphql">GraphiQL</a>: the GraphQL API and its documentation</li>` : ""}
<li><a href="${baseUrl}/models">Models</a>: all that there are, with their prices, as JSON</li>
</ul>`;
}
