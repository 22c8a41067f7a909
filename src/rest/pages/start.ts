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
<p>Sluice connects OpenAI clients, REST and GraphQL to models for text, images, video, speech, music and embeddings, paid with prepaid credits.</p>
<div class="buttons">
<a class="button primary" href="${pages}/sign-in">Sign in</a>
${isSignUpOpen ? html`<a class="button" href="${pages}/sign-up">Create an account</a>` : ""}
</div>
${isSignUpOpen ? "" : html`<p class="soft">Sign-up is closed. Ask the operator of this gateway for an account.</p>`}
<h2>Get started</h2>
<p>Set the base URL of your OpenAI client, and use an API key of your account:</p>
<pre><code>${baseUrl}/v1</code></pre>
<p>The list of models needs no key:</p>
<pre><code>curl ${baseUrl}/v1/models</code></pre>
<h2>Documentation</h2>
${gatewayLinks(gateway)}`;
  return { title: "A gateway for generative AI", body };
}

function gatewayLinks({ addresses, hasGraphiQL }: Pick<GatewayInfo, "addresses" | "hasGraphiQL">): Html {
  const { baseUrl } = addresses();
  return html`<ul>
<li><a href="${baseUrl}/docs">API reference</a>: all REST routes and GraphQL operations</li>
<li><a href="${baseUrl}/openapi.json">OpenAPI document</a>: the REST API in OpenAPI format</li>
${hasGraphiQL ? html`<li><a href="${baseUrl}/graphql">GraphiQL</a>: explore the GraphQL API</li>` : ""}
<li><a href="${baseUrl}/models">Models</a>: all models and prices, as JSON</li>
</ul>`;
}
