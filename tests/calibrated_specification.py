"""The calibrated drafter in plain Python: slow, short, and meant to be checked by eye against its README.

Every number is an integer, and `>>` and `//` round down as the native code's shifts do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

NULL = -1
ORDERS = (1, 2, 3, 4, 6)
MATCH_LENGTHS = (4, 8)
LIMIT = 2047  # of odds, in 256ths
CERTAIN = 1 << 16
WORD = (1 << 64) - 1
OTHER = -512  # odds of a candidate that a source knows nothing of
SPEAKING = 3  # contexts of a scope, the longest found


# --- probabilities -----------------------------------------------------------------------------------------


def logistic_tables() -> tuple[list[int], list[int]]:
    """squash by odds + LIMIT, of 2^16; stretch by probability of 12 bits."""
    step = 1148426689630428644  # e^(-1/256), of 2^60
    power, squash = 1 << 60, [0] * (2 * LIMIT + 1)
    for x in range(LIMIT + 1):
        p = (1 << 76) // ((1 << 60) + power)
        squash[LIMIT + x], squash[LIMIT - x] = p, CERTAIN - p
        power = power * step >> 60
    stretch, x = [], 0
    for p in range(4096):
        while x < 2 * LIMIT and squash[x] < p * 16 + 8:
            x += 1
        stretch.append(x - LIMIT)
    return squash, stretch


SQUASH, STRETCH = logistic_tables()


def clamp(x: int, limit: int) -> int:
    return max(-limit, min(limit, x))


def squash(odds: int) -> int:
    return SQUASH[clamp(odds, LIMIT) + LIMIT]


@dataclass
class Counter:
    """A probability of 22 bits, and how many truths made it."""

    p: int = 1 << 21
    count: int = 0

    @property
    def odds(self) -> int:
        return STRETCH[self.p >> 10]

    def train(self, truth: bool) -> None:
        target = (1 << 22) - 1 if truth else 0
        self.p += (target - self.p) * (655360 // (10 * self.count + 16)) >> 16
        self.count = min(self.count + 1, 255)


class Correction:
    def __init__(self) -> None:
        self.table = [squash((i - 16) * 128) for i in range(33)]

    def at(self, odds: int) -> int:
        low, part = divmod(odds + LIMIT + 1, 128)
        return self.table[low] * (128 - part) + self.table[low + 1] * part >> 7

    def train(self, odds: int, truth: bool) -> None:
        low, part = divmod(odds + LIMIT + 1, 128)
        low += part >= 64
        self.table[low] += (CERTAIN - 1 if truth else 0) - self.table[low] >> 6


# --- contexts ----------------------------------------------------------------------------------------------


def finish(total: int, length: int) -> int:
    h = (total ^ length << 56) * 0xFF51AFD7ED558CCD & WORD
    h ^= h >> 32
    h = h * 0xC4CEB9FE1A85EC53 & WORD
    return h ^ h >> 29


def hash_of(tokens: list[int]) -> int:
    """Of an n-gram, its last token first."""
    total = sum((t + 1) * 0x9E3779B97F4A7C15 * 0xD1342543DE82EF95**i for i, t in enumerate(reversed(tokens)))
    return finish(total & WORD, len(tokens))


Key = tuple[int, int]  # 32 bits that choose the bucket, and 15 more


def keys_of(text: list[int]) -> list[Key]:
    """Of the contexts that end a text, as far as it is long enough."""
    keys = []
    for order, length in enumerate(ORDERS):
        if length <= len(text):
            h = hash_of(text[-length:])
            keys.append(((h & 0xFFFFFFFF) or 1, order << 12 | h >> 52))
    return keys


@dataclass
class Node:
    """A context: A, the most frequent successor, B, the most recent other, and counts."""

    key: Key
    first: int
    second: int = NULL
    a: int = 1
    b: int = 0
    n: int = 1
    missed: bool = False

    def count(self, token: int) -> None:
        if token == self.first and self.n >= 16 and self.a == self.n:
            self.missed = False
            return
        if self.n >= 30:
            self.a, self.b = (self.a + 1) // 2, self.b // 2
            self.n = max(self.n // 2, self.a + self.b)
        self.n += 1
        self.missed = token != self.first
        if token == self.first:
            self.a += 1
        elif token != self.second or self.b == 0:
            self.second, self.b = token, 1
        else:
            self.b += 1
            if self.b > self.a:
                self.swap()
                self.missed = False

    def uncount(self, token: int) -> bool:
        """Whether anything is left."""
        if token == self.first and self.a > 0:
            self.a -= 1
            if self.b > self.a:
                self.swap()
        elif token == self.second:
            self.b = max(self.b - 1, 0)
            if self.b == 0:
                self.second = NULL
        self.n = max(self.n - 1, self.a + self.b)
        return self.a > 0

    def swap(self) -> None:
        self.first, self.second, self.a, self.b = self.second, self.first, self.b, self.a

    @property
    def state(self) -> int:
        def bucket(n: int) -> int:
            return n if n <= 4 else 5 if n <= 6 else 6 if n <= 9 else 7 if n <= 15 else 8

        return ((bucket(self.a) * 9 + bucket(self.n - self.a)) * 2 + self.missed) * 4 + min(self.b, 3)


class Table:
    """Linear hashing; a bucket of eight that is full gives up the node seen least often."""

    def __init__(self, load: int) -> None:
        self.load, self.size, self.buckets = load, 0, [[]]  # type: ignore[var-annotated]

    def bucket(self, key: Key) -> list[Node]:
        buckets: list[list[Node]] = self.buckets
        round_ = 1 << (len(buckets) - 1).bit_length()
        at = key[0] % round_
        return buckets[at if at < len(buckets) else at - round_ // 2]

    def find(self, key: Key) -> Node | None:
        return next((node for node in self.bucket(key) if node.key == key), None)

    def insert(self, key: Key, token: int) -> None:
        bucket, node = self.bucket(key), Node(key, token)
        if len(bucket) < 8:
            bucket.append(node)
            self.size += 1
        else:
            worth = [other.n * 8 + 7 - (other.key[1] >> 12) for other in bucket]
            bucket[worth.index(min(worth))] = node
        if self.size * 16 > len(self.buckets) * 8 * self.load:
            self.split()

    def split(self) -> None:
        added = len(self.buckets)
        round_ = 1 << added.bit_length()
        old = self.buckets[added - round_ // 2]
        self.buckets.append([node for node in old if node.key[0] % round_ == added])
        old[:] = [node for node in old if node.key[0] % round_ != added]

    def uncount(self, key: Key, token: int) -> None:
        bucket = self.bucket(key)
        for i, node in enumerate(bucket):
            if node.key == key and not node.uncount(token):
                bucket[i] = bucket[-1]
                bucket.pop()
                self.size -= 1
                return


# --- texts -------------------------------------------------------------------------------------------------


class Text:
    """A ring of tokens, and where its n-grams of two lengths last ended. Place 0 is none."""

    def __init__(self, capacity: int) -> None:
        self.capacity, self.head = capacity, 1
        self.tokens, self.slots = [NULL], [[0], [0]]

    def at(self, place: int) -> int:
        return self.tokens[place] if place < len(self.tokens) and place != self.head else NULL

    def ahead(self, place: int, by: int) -> int:
        return (place - 1 + by) % self.capacity + 1

    def push(self, token: int) -> None:
        if self.head == len(self.tokens):
            self.tokens.append(token)
            for slots in self.slots:
                slots.append(0)
        else:
            self.tokens[self.head] = token
        self.head = self.ahead(self.head, 1)

    def slot(self, i: int, hash_: int) -> tuple[int, int]:
        """The n-gram's slot, and half a round."""
        slots = self.slots[i]
        round_ = 1 << (len(slots) - 1).bit_length()
        at = hash_ % round_
        return at if at < len(slots) else at - round_ // 2, round_ // 2

    def find(self, i: int, hash_: int) -> int:
        at, half = self.slot(i, hash_)
        place = self.slots[i][at]
        return place if place or at < half else self.slots[i][at - half]

    def mark(self, hashes: list[int], run: int) -> None:
        for i, hash_ in enumerate(hashes):
            if run >= MATCH_LENGTHS[i]:
                self.slots[i][self.slot(i, hash_)[0]] = self.head


@dataclass
class Match:
    """A pointer into a text: for how long it agreed, and the last 16 comparisons."""

    place: int = 0
    length: int = 0
    misses: int = 0

    def copy(self) -> Match:
        return Match(self.place, self.length, self.misses)

    def advance(self, text: Text, token: int) -> None:
        if not self.place:
            return
        hit = text.at(self.place) == token
        self.misses = (self.misses << 1 | (not hit)) & 0xFFFF
        self.length = min(self.length + 1, 64) if hit else 0
        self.place = text.ahead(self.place, 1)
        if self.misses.bit_count() > 8:
            self.place = self.length = self.misses = 0

    def seek(self, text: Text, place: int, at_least: int, now: Text) -> None:
        if not place or place == self.place or self.length >= 2 * at_least:
            return
        n = 0
        while (
            n < min(32, place - 1, now.head - 1)
            and text.tokens[place - 1 - n] == now.tokens[now.head - 1 - n]
        ):
            n += 1
        if n >= at_least and n > self.length:
            self.place, self.length, self.misses = place, n, 0

    @property
    def state(self) -> int:
        starts = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 64)
        bucket = sum(self.length >= start for start in starts) - 1
        return (bucket * 9 + self.misses.bit_count()) * 2 + (self.misses & 15 != 0)

    @property
    def kind(self) -> int:
        return 0 if not self.place else 1 if not self.length else 2 if self.length < 16 else 3


# --- scopes ------------------------------------------------------------------------------------------------


class Scope:
    def __init__(self, capacity: int, load: int, new_contexts: int) -> None:
        self.nodes, self.text, self.new_contexts = Table(load), Text(capacity), new_contexts

    def found(self, keys: list[Key]) -> int:
        """How many contexts there are, from the shortest up to the first that is missing."""
        n = 0
        while n < len(keys) and self.nodes.find(keys[n]):
            n += 1
        return n

    def count(self, keys: list[Key], found: int, token: int) -> None:
        for i in range(max(found - SPEAKING, 0), min(len(keys), found + self.new_contexts)):
            node = self.nodes.find(keys[i])
            if node:
                node.count(token)
            elif i >= found:
                self.nodes.insert(keys[i], token)


@dataclass
class Stretch:
    session: int
    place: int
    lead: int
    length: int = 0
    unlearned: int = 0


class History:
    """What all sessions have answered, the oldest given up at the bound."""

    margin = 16

    def __init__(self, bound: int) -> None:
        self.bound, self.held, self.gone, self.first_number = bound, 0, 0, 0
        self.scope = Scope(bound + self.margin, 10, 1)
        self.stretches: list[Stretch] = []
        self.pending: list[list[int]] = []

    def open(self, session: int, lead: list[int]) -> None:
        self.stretches.append(Stretch(session, self.scope.text.head, len(lead)))
        for token in lead:
            self.push(token)

    def learn(self, keys: list[Key], found: int, token: int) -> None:
        self.scope.count(keys, found, token)
        self.push(token)
        self.stretches[-1].length += 1

    def push(self, token: int) -> None:
        while self.held >= self.bound:
            self.evict()
        self.scope.text.push(token)
        self.held += 1

    def evict(self) -> None:
        oldest = self.stretches[0]
        if self.gone >= oldest.lead + oldest.unlearned:
            self.unlearn_next(oldest)
        self.gone += 1
        self.held -= 1
        if self.gone == oldest.lead + oldest.length and len(self.stretches) > 1:
            self.stretches.pop(0)
            self.first_number += 1
            self.gone = 0

    def unlearn_next(self, stretch: Stretch) -> bool:
        text = self.scope.text
        if stretch.unlearned == stretch.length:
            start = max(self.gone - self.margin, 0) if stretch is self.stretches[0] else 0
            for i in range(start, stretch.lead + stretch.length):
                text.tokens[text.ahead(stretch.place, i)] = NULL
            return False
        at = stretch.lead + stretch.unlearned
        stretch.unlearned += 1
        context = [text.at(text.ahead(stretch.place, i)) for i in range(max(at - 6, 0), at)]
        for key in keys_of(context):
            self.scope.nodes.uncount(key, text.at(text.ahead(stretch.place, at)))
        return True

    def forget(self, session: int) -> None:
        if self.stretches:
            self.pending.append([session, self.first_number, self.first_number + len(self.stretches)])

    def work(self, steps: int) -> None:
        while self.pending and steps > 0:
            steps -= 1
            session, number, end = self.pending[0]
            number = max(number, self.first_number)
            self.pending[0][1] = number
            if number >= end:
                self.pending.pop(0)
                continue
            stretch = self.stretches[number - self.first_number]
            if stretch.session != session or not self.unlearn_next(stretch):
                self.pending[0][1] = number + 1


# --- predicting --------------------------------------------------------------------------------------------


class Calibration:
    def __init__(self) -> None:
        middle = (0, 10, 20, 30, 40, 55, 80, 120, 200)

        def guess(state: int, of_second: bool) -> Counter:
            hits, others = middle[state // 72], middle[state // 8 % 9]
            part = min(state % 4 * 10, others) + 2 if of_second else hits + 3
            return Counter((part << 22) // (hits + others + 13))

        lanes = [(scope, order) for scope in (0, 1) for order in range(5)]
        self.first = {lane: [guess(state, False) for state in range(648)] for lane in lanes}
        self.second = {lane: [guess(state, True) for state in range(648)] for lane in lanes}
        self.match = [[Counter() for _ in range(288)] for _ in (0, 1)]
        self.weights = [[[20000] * 16 for _ in range(24)] for _ in (0, 1)]
        self.correction = [Correction() for _ in range(4)]
        self.truths = 0


@dataclass
class Source:
    """What one source says: odds of A, of B and of any other candidate."""

    lane: int
    first: int
    first_odds: int
    second: int
    second_odds: int
    counters: tuple[Counter, Counter | None]

    def odds(self, token: int) -> int:
        return self.first_odds if token == self.first else self.second_odds if token == self.second else OTHER


@dataclass
class Prediction:
    keys: list[Key]
    found: list[int]
    sources: list[Source] = field(default_factory=list)
    sets: list[int] = field(default_factory=list)
    kind: int = 0
    token: int = NULL
    odds: int = -LIMIT - 1
    mixed: int = 0
    p: int = 0
    inputs: list[int] = field(default_factory=list)


@dataclass
class Session:
    own: Scope
    last_used: int
    text: list[int] = field(default_factory=list)
    matches: list[Match] = field(default_factory=lambda: [Match(), Match()])


class Specification:
    def __init__(
        self,
        tau: int = 50,
        share: bool = True,
        history_bound: int = 1 << 26,
        session_bound: int = 1 << 20,
    ) -> None:
        self.tau, self.share, self.session_bound = tau, share, session_bound
        self.calibration = Calibration()
        self.history = History(history_bound)
        self.sessions: dict[int, Session] = {}
        self.begun, self.now, self.recording = 0, NULL, False
        self.steps: list[Prediction] = []
        self.costs: list[int] = []
        self.tokens, self.spent, self.drafted, self.accepted = 0, 0, 0, 0

    # --- sessions

    def begin(self, session: int) -> None:
        self.steps, self.recording = [], False
        self.begun += 1
        if session not in self.sessions:
            self.sessions[session] = Session(Scope(self.session_bound, 5, 2), 0)
        self.now = session
        self.sessions[session].last_used = self.begun
        while len(self.sessions) > 1 and self.own_tokens() > self.session_bound:
            del self.sessions[min(self.sessions, key=lambda s: self.sessions[s].last_used)]

    def own_tokens(self) -> int:
        return sum(session.own.text.head - 1 for session in self.sessions.values())

    def close(self, session: int) -> None:
        if self.sessions.pop(session, None) and self.now == session:
            self.now, self.steps = NULL, []

    def forget(self, session: int) -> None:
        self.close(session)
        self.recording = False
        self.history.forget(session)
        self.history.work(256)

    def save(self) -> None:
        """Saved and loaded again, all is there but what the last draft computed."""
        self.steps, self.recording, self.now, self.accepted = [], False, NULL, 0

    # --- learning

    def learn(self, tokens: list[int]) -> None:
        now = self.sessions[self.now]
        for token in tokens:
            keys = keys_of(now.text)
            now.own.count(keys, now.own.found(keys), token)
            now.matches[1].advance(self.history.scope.text, token)
            self.append(token, False)
        self.steps, self.recording = [], False

    def accept(self, token: int) -> None:
        now = self.sessions[self.now]
        if not self.steps:
            self.steps = [self.predict(now.text, now.matches)]
        self.accepted += 1
        step = self.steps.pop(0)
        self.learn_from(step, token)
        now.own.count(step.keys, step.found[0], token)
        now.matches[1].advance(self.history.scope.text, token)
        if self.share:
            self.history.work(4)
            if not self.recording:
                self.history.open(self.now, now.text[-6:])
                self.recording = True
            self.history.learn(step.keys, step.found[1], token)
        self.append(token, self.recording)
        if step.token != token:
            self.steps = []

    def append(self, token: int, record: bool) -> None:
        now = self.sessions[self.now]
        now.matches[0].advance(now.own.text, token)
        now.own.text.push(token)
        now.text.append(token)
        hashes = [hash_of(now.text[-n:]) for n in MATCH_LENGTHS]
        for scope, text in enumerate(self.texts(now)):
            for i in (1, 0):
                if len(now.text) >= MATCH_LENGTHS[i]:
                    now.matches[scope].seek(text, text.find(i, hashes[i]), MATCH_LENGTHS[i], now.own.text)
        now.own.text.mark(hashes, len(now.text))
        if record:
            stretch = self.history.stretches[-1]
            self.history.scope.text.mark(hashes, stretch.lead + stretch.length)

    def texts(self, now: Session) -> list[Text]:
        return [now.own.text, self.history.scope.text][: 1 + self.share]

    # --- drafting

    def draft(self, n_draft: int) -> list[int]:
        now = self.sessions[self.now]
        text, matches, product = list(now.text[-8:]), [m.copy() for m in now.matches], CERTAIN
        if self.costs and self.accepted:
            self.passed()
        self.steps, self.accepted, drafted = [], 0, []
        gains = [0]  # of drafting 0, 1, ... tokens, where costs are known
        end = min(n_draft, 64, len(self.costs) - 1) if self.costs else min(n_draft, 64)
        while len(self.steps) < end:
            step = self.predict(text, matches)
            self.steps.append(step)
            if step.token == NULL:
                break
            product = product * step.p >> 16
            if not self.costs and product < self.tau * CERTAIN // 1000:
                break
            drafted.append(step.token)
            if self.costs:
                best = max(gains)
                before, price = gains[-1] + self.price(len(drafted) - 1), self.price(len(drafted))
                gains.append(before + product - price)
                if gains[-1] <= best and gains[-1] + product * (end - len(drafted)) <= best:
                    break
            text.append(step.token)
            for match, of in zip(matches, (now.own.text, self.history.scope.text), strict=True):
                match.advance(of, step.token)
        if self.costs:
            drafted = drafted[: gains.index(max(gains))]
        self.drafted = len(drafted)
        return drafted

    def price(self, drafted: int) -> int:
        """In tokens of 2^16, at the running rate."""
        more = (self.costs[drafted] - self.costs[0]) * (self.tokens << 16)
        return more // self.spent if more >= 0 else -(-more // self.spent)

    def passed(self) -> None:
        self.tokens += self.accepted
        self.spent += self.costs[self.drafted]
        if self.spent > 256 * self.costs[0]:
            self.tokens, self.spent = (self.tokens + 1) // 2, (self.spent + 1) // 2

    def set_costs(self, *costs: int) -> None:
        self.costs, self.tokens, self.spent = list(costs), 1, (costs or (0,))[0]

    def predict(self, text: list[int], matches: list[Match]) -> Prediction:
        now, calibration = self.sessions[self.now], self.calibration
        keys = keys_of(text)
        scopes = [now.own, self.history.scope][: 1 + self.share]
        step = Prediction(keys, [scope.found(keys) for scope in scopes] + [0] * (2 - len(scopes)))
        for s, scope in enumerate(scopes):
            for i in range(max(step.found[s] - SPEAKING, 0), step.found[s]):
                node = scope.nodes.find(keys[i])
                assert node is not None
                a, b = calibration.first[s, i][node.state], calibration.second[s, i][node.state]
                lane = 2 * (5 - i) + s
                step.sources.append(Source(lane, node.first, a.odds, node.second, b.odds, (a, b)))
            token, kind = scope.text.at(matches[s].place), 0
            if token != NULL:
                counter, kind = calibration.match[s][matches[s].state], matches[s].kind
                step.sources.append(Source(s, token, counter.odds, NULL, 0, (counter, None)))
            step.sets.append(step.found[s] * 4 + kind)
            step.kind = max(step.kind, kind)
        step.sets += [0] * (2 - len(scopes))
        step.sources.sort(key=lambda source: source.lane)
        self.choose(step)
        return step

    def choose(self, step: Prediction) -> None:
        a, b = (self.calibration.weights[s][step.sets[s]] for s in (0, 1))
        said = [source.first for source in step.sources] + [source.second for source in step.sources]
        candidates = [token for token in dict.fromkeys(said) if token != NULL][:5]
        for token in candidates:
            inputs = [0] * 16
            inputs[12] = 256
            for source in step.sources:
                inputs[source.lane] = source.odds(token)
            total = sum((x + y) * i >> 4 for x, y, i in zip(a, b, inputs, strict=True))
            odds = clamp(total >> 12, LIMIT)
            if odds > step.odds or (odds == step.odds and token < step.token):
                step.odds, step.token, step.inputs = odds, token, inputs
        if step.token != NULL:
            step.mixed = squash(step.odds)
            step.p = step.mixed + 3 * self.calibration.correction[step.kind].at(step.odds) >> 2

    def learn_from(self, step: Prediction, truth: int) -> None:
        calibration = self.calibration
        calibration.truths += 1 if calibration.truths < 2 * 8192 else -3
        if calibration.truths < 8192 or calibration.truths % 4 == 0:
            for source in step.sources:
                first, second = source.counters
                first.train(source.first == truth)
                if second is not None and source.second != NULL:
                    second.train(source.second == truth)
        if step.token == NULL:
            return
        right = step.token == truth
        error = (CERTAIN - 1 if right else 0) - step.mixed
        gradient = error * (4 if calibration.truths < 4096 else 1) >> 2
        for weights, number in zip(calibration.weights, step.sets, strict=True):
            weights[number] = [
                clamp(w + (x * gradient + (1 << 13) >> 14), (1 << 18) - 1)
                for w, x in zip(weights[number], step.inputs, strict=True)
            ]
        calibration.correction[step.kind].train(step.odds, right)


def reliability(predicted: list[int], truths: list[bool]) -> Fraction:
    """Predicted over actual acceptance."""
    return Fraction(sum(predicted), CERTAIN * max(sum(truths), 1))
